"""SecantusDB with the arguments of mongod that tests pass, and with its words.

Tests start every image in the same way: with --replSet NAME, on port 27017, with the data in /data/db. Testcontainers
waits for mongod's "Waiting for connections". SecantusDB is the primary of its own replica set from the start.
"""

import argparse
import sys

from secantus.cli import main
from secantus.server import SecantusDBServer

parser = argparse.ArgumentParser()
parser.add_argument("--replSet")
parser.parse_args()

start = SecantusDBServer.start


def start_and_say_so(self):
    start(self)
    print("Waiting for connections", flush=True)


SecantusDBServer.start = start_and_say_so
sys.exit(main(["--host", "0.0.0.0", "--port", "27017", "--storage-path", "/data/db", "--enable-test-commands", "--sync-on-commit"]))

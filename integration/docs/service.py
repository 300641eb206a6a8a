"""A service of a page of the guides, played by PyMongo.

service.py URI write REPRESENTATION DATABASE.COLLECTION COUNT FIELD...   inserts documents
service.py URI read REPRESENTATION DATABASE.COLLECTION COUNT FIELD...    finds all of them by each field, with their UUIDs
service.py URI lost REPRESENTATION DATABASE.COLLECTION COUNT FIELD...    finds none of them
service.py URI rename DATABASE.COLLECTION NAME
service.py URI delete FILE KEY          deletes the documents whose _ids are under the key in the pairs of a file

REPRESENTATION is that of the connection string, or goRaw for subtype 0, as a Go program without a codec writes it.
The UUIDs are random ones of version 4, the same in every run. Those of a FIELD written as bits:FIELD have neither a
version nor a variant. A FIELD written as FIELD=TEXT is not a UUID, and makes the UUIDs of the others different.
"""

import random
import sys
import uuid

from bson import json_util
from bson.binary import CSHARP_LEGACY, JAVA_LEGACY, PYTHON_LEGACY, STANDARD, Binary
from bson.codec_options import CodecOptions
from pymongo import MongoClient

REPRESENTATIONS = {"standard": STANDARD, "csharpLegacy": CSHARP_LEGACY, "javaLegacy": JAVA_LEGACY, "pythonLegacy": PYTHON_LEGACY}


def ids(field, count, constants):
    r = random.Random(field + "".join(constants))
    return [uuid.UUID(int=r.getrandbits(128), version=None if field.startswith("bits:") else 4) for _ in range(count)]


def main(uri, what, *args):
    client = MongoClient(uri)
    if what == "rename":
        database, name = args[0].split(".", 1)
        client[database][name].rename(args[1])
        return
    if what == "delete":
        for line in open(args[0]):
            pair = json_util.loads(line)
            database, name = pair["collection"].split(".", 1)
            assert client[database][name].delete_one({"_id": pair[args[1]]}).deleted_count == 1, pair
        return
    representation, namespace, count, *fields = args
    database, name = namespace.split(".", 1)
    options = CodecOptions(uuid_representation=REPRESENTATIONS.get(representation, STANDARD))
    collection = client[database].get_collection(name, codec_options=options)
    constants = [field for field in fields if "=" in field]
    fields = [field for field in fields if "=" not in field]
    rows = list(zip(*(ids(field, int(count), constants) for field in fields)))
    fields = [field.removeprefix("bits:") for field in fields]
    if what == "write":
        wrap = (lambda u: Binary(u.bytes, 0)) if representation == "goRaw" else (lambda u: u)
        same = dict(constant.split("=", 1) for constant in constants)
        collection.insert_many([{**{field: wrap(u) for field, u in zip(fields, row)}, **same} for row in rows])
        return
    for i, field in enumerate(fields):
        found = {doc[field]: doc for doc in collection.find({field: {"$in": [row[i] for row in rows]}})}
        if what == "lost":
            assert not found, (field, found)
            continue
        for row in rows:
            want = dict(zip(fields, row))
            got = found.get(row[i])
            assert got is not None, ("nothing is found", field, row[i])
            assert {f: got[f] for f in fields} == want, (got, want)


main(*sys.argv[1:])

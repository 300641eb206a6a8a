#!/bin/sh
# Builds the image of Dockerfile from Debian packages and from the wheels in a directory. Needs root, debootstrap, and
# a Python 3.11 with pip. Usage: build.sh WHEELS PYTHON [name:tag]
set -eu
wheels=$1 python=$2 image=${3:-bsonids/secantus:test}
cd "$(dirname "$0")"
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
debootstrap --variant=minbase --include=python3 bookworm "$context/rootfs" >"$context/log" ||
	{ tail -n 20 "$context/log" >&2; exit 1; }
"$python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$wheels" \
	--target "$context/rootfs/opt/secantus" SecantusDB
rm -rf "$context/rootfs/var/cache" "$context/rootfs/usr/share/doc" "$context/rootfs/usr/share/locale"
tar -C "$context/rootfs" -cf "$context/rootfs.tar" --exclude=./dev/* --exclude=./proc/* .
cp Dockerfile server.py "$context"
printf 'rootfs\nlog\n' >"$context/.dockerignore"
# The classic builder is in every engine; BuildKit's client is a plug-in that may be missing.
DOCKER_BUILDKIT=0 docker build --quiet --tag "$image" "$context"

#!/bin/sh
# Builds the image of Dockerfile from this checkout, without pulling anything. Usage: build.sh [name:tag]
set -eu
image=${1:-bsonids/ferretserver:test}
cd "$(dirname "$0")"
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
CGO_ENABLED=0 GOOS=linux GOARCH=$(docker version --format '{{.Server.Arch}}') \
	go build -ldflags='-s -w' -o "$context/ferretserver" ../cmd/ferretserver
cp Dockerfile "$context"
# The classic builder is in every engine; BuildKit's client is a plug-in that may be missing.
DOCKER_BUILDKIT=0 docker build --quiet --tag "$image" "$context"

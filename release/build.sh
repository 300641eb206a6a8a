#!/bin/sh
# Builds a release into dist/: archives, packages, bills of materials and checksums by goreleaser, and the container image
# of the same binaries as an OCI layout in dist/image. Usage: build.sh ARGUMENT… (of "goreleaser release")
set -eu
cd "$(dirname "$0")/.."
goreleaser=${GORELEASER:-goreleaser}
"$goreleaser" release --clean "$@"
binary() { find dist -path "dist/bsonids_linux_$1*/bsonids"; }
release/generated/bin/image -out dist/image \
	-version "$(sed -n 's/.*"version":"\([^"]*\)".*/\1/p' dist/metadata.json)" \
	-revision "$(git rev-parse HEAD)" \
	-created "$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)" \
	-licence LICENSE -notices release/generated/THIRD_PARTY_NOTICES \
	"linux/amd64=$(binary amd64)" "linux/arm64=$(binary arm64)"

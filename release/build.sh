#!/bin/sh
# Builds a release into dist/: archives, packages, bills of materials and checksums by goreleaser, and the container image
# of the same binaries as an OCI layout in dist/image. Usage: build.sh ARGUMENT… (of "goreleaser release")
set -eu
cd "$(dirname "$0")/.."
goreleaser=${GORELEASER:-goreleaser}
# The tags of the other modules are on the same commit, and goreleaser cannot read them as versions.
GORELEASER_CURRENT_TAG=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || echo v0.0.0)
export GORELEASER_CURRENT_TAG
# The programs are built outside the workspace, as "go install" builds them. prepare.sh makes the files that a commit
# without a tag needs for that.
export GOWORK=off
"$goreleaser" release --clean "$@"
binary() { find dist -path "dist/bsonids_linux_$1*/bsonids"; }
release/generated/bin/image -out dist/image \
	-version "$(sed -n 's/.*"version":"\([^"]*\)".*/\1/p' dist/metadata.json)" \
	-revision "$(git rev-parse HEAD)" \
	-created "$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)" \
	-licence LICENSE -notices release/generated/THIRD_PARTY_NOTICES \
	"linux/amd64=$(binary amd64)" "linux/arm64=$(binary arm64)"

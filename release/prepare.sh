#!/bin/sh
# Writes what a release contains beside the programs to release/generated: notices of the dependencies, man pages,
# completions, and the tool that writes the bill of materials. goreleaser runs it.
set -eu
cd "$(dirname "$0")/.."
export GOWORK=off
out=$PWD/release/generated
rm -rf "$out"
mkdir -p "$out/man" "$out/completions"
(cd release && go build -o generated/bin/ ./image ./licences ./proxy github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod)
# The command is built with the library of its own commit: with the published version if the commit has a tag, and otherwise
# with one that the go command takes from files. Either way its dependencies are those of "go install".
cp cmd/bsonids/go.mod "$out/bsonids.mod"
cp cmd/bsonids/go.sum "$out/bsonids.sum"
cd cmd/bsonids
if ! git describe --exact-match --match 'v[0-9]*' >/dev/null 2>&1; then
	library=github.com/bsonids/bsonids
	version=v0.0.0-$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)-$(git rev-parse --short=12 HEAD)
	(cd ../.. && "$out/bin/proxy" "$version" HEAD "$out/modules")
	go mod edit "-require=$library@$version" "$out/bsonids.mod"
	GOPROXY=file://$out/modules,$(go env GOPROXY) GONOSUMDB=$library GONOPROXY=none go mod tidy "-modfile=$out/bsonids.mod"
fi
export GOFLAGS=-modfile=../../release/generated/bsonids.mod # a path with a space cannot be here
"$out/bin/licences" -notices "$out/THIRD_PARTY_NOTICES"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) go run ./internal/manual "$out/man"
gzip -n -9 "$out"/man/*
go build -o "$out/bin/bsonids" .
for shell in bash zsh fish; do
	"$out/bin/bsonids" completion "$shell" >"$out/completions/bsonids.$shell"
done
"$out/bin/bsonids" completion powershell >"$out/completions/bsonids.ps1"

#!/bin/sh
# Writes what a release contains beside the programs to release/generated: notices of the dependencies, man pages,
# completions, and the tool that writes the bill of materials. goreleaser runs it.
set -eu
cd "$(dirname "$0")/.."
out=release/generated
rm -rf "$out"
mkdir -p "$out/man" "$out/completions"
(cd release && GOWORK=off go build -o generated/bin/ ./image ./licences github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod)
"$out/bin/licences" -notices "$out/THIRD_PARTY_NOTICES"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) go run ./cmd/bsonids/internal/manual "$out/man"
gzip -n -9 "$out"/man/*
go build -o "$out/bin/bsonids" ./cmd/bsonids
for shell in bash zsh fish; do
	"$out/bin/bsonids" completion "$shell" >"$out/completions/bsonids.$shell"
done
"$out/bin/bsonids" completion powershell >"$out/completions/bsonids.ps1"

#!/usr/bin/env bash
# Publishes a version of the working tree with tag.sh to a git repository that stands for GitHub, with faults on the way,
# and then uses it as strangers do: go get of the library, go install of the commands, and a build of the tagged commit.
#
# usage: release/strangers.sh [DIR]
#
# Modules of others come from the module cache and from the proxy that GOPROXY names. Nothing is left behind, unless DIR is
# named: then DIR/origin.git is the repository with the version, and DIR/bin has the commands as "go install" made them.
set -euo pipefail
cd "$(dirname "$0")/.."
library=github.com/bsonids/bsonids
version=v0.99.0
if [ $# -gt 0 ]; then
	mkdir "$1"
	work=$(cd "$1" && pwd)
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
fi
export GIT_AUTHOR_NAME=bsonids GIT_AUTHOR_EMAIL=bsonids@example.com GIT_COMMITTER_NAME=bsonids GIT_COMMITTER_EMAIL=bsonids@example.com

# The working tree, as the newest commit of main at the origin. A clone of one commit is enough.
git init --quiet --bare --initial-branch main "$work/origin.git"
git init --quiet --initial-branch main "$work/clone"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
	[ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --create --null --files-from - | tar --extract --directory "$work/clone"
cd "$work/clone"
printf '\n## %s - 2026-01-01\n\n- a version\n' "${version#v}" >>CHANGELOG.md
git remote add origin "$work/origin.git"
git add --all
git commit --quiet --message "the working tree"
git push --quiet origin main

# A gh that says what the file "checks" says.
mkdir "$work/path"
cat >"$work/path/gh" <<-END
	#!/bin/sh
	cat "$work/checks"
END
chmod +x "$work/path/gh"
PATH=$work/path:$PATH
echo success >"$work/checks"

# refuses FAULT TEXT fails unless tag.sh stops with the text, and leaves origin and clone as they are.
refuses() {
	local before after
	before=$(git show-ref; git -C "$work/origin.git" show-ref; git status --porcelain)
	if release/tag.sh "$version" >"$work/out" 2>&1; then
		echo "strangers.sh: $1: tag.sh published" >&2
		exit 1
	fi
	after=$(git show-ref; git -C "$work/origin.git" show-ref; git status --porcelain)
	if ! grep -q "$2" "$work/out" || [ "$before" != "$after" ]; then
		echo "strangers.sh: $1: want \"$2\", and nothing changed; tag.sh said:" >&2
		cat "$work/out" >&2
		diff <(echo "$before") <(echo "$after") >&2
		exit 1
	fi
	echo "refused: $1"
}

echo change >>README.md
refuses "a change in the work tree" "the work tree has changes"
git checkout --quiet README.md
echo failure >"$work/checks"
refuses "a test that fails" "are not green: failure"
: >"$work/checks"
refuses "checks that have not ended" "are not green: none has ended"
mv "$work/checks" "$work/no-checks"
refuses "no answer about the checks" "gh cannot tell"
echo success >"$work/checks"
for tag in "$version" "cmd/bsonids/$version" "analysis/$version"; do
	git push --quiet origin "HEAD:refs/tags/$tag"
	refuses "the tag $tag at origin" "origin has the tag $tag already"
	git push --quiet origin ":refs/tags/$tag"
	git tag "$tag"
	refuses "the tag $tag here" "the tag $tag exists here"
	git tag --delete "$tag" >/dev/null
done
git commit --quiet --allow-empty --message "not pushed"
refuses "a commit that origin has not" "not the newest commit of main"
git reset --quiet --hard HEAD^
version=v0.99.1 refuses "a version that the changelog lacks" "has no section"
mv "$work/origin.git" "$work/gone.git"
mkdir "$work/origin.git"
if release/tag.sh "$version" >"$work/out" 2>&1 || ! grep -q "origin does not answer" "$work/out"; then
	echo "strangers.sh: no network: tag.sh said:" >&2
	cat "$work/out" >&2
	exit 1
fi
rmdir "$work/origin.git"
mv "$work/gone.git" "$work/origin.git"
echo "refused: no network"
cat >"$work/origin.git/hooks/update" <<-'END'
	#!/bin/sh
	case $1 in refs/tags/analysis/*) echo "protected tag" >&2 && exit 1 ;; esac
END
chmod +x "$work/origin.git/hooks/update"
refuses "a tag that origin refuses" "protected tag"
rm "$work/origin.git/hooks/update"
# The push arrives, and the script never learns of it.
cat >"$work/origin.git/hooks/post-receive" <<-'END'
	#!/bin/sh
	kill -9 "$(cat "$GIT_DIR/../tag.pid")" && sleep 1
END
chmod +x "$work/origin.git/hooks/post-receive"
head=$(git rev-parse HEAD)
status=0
# shellcheck disable=SC2016 # $0 and $1 are those of the inner shell
bash -c 'echo $$ >"$0" && exec release/tag.sh "$1"' "$work/tag.pid" "$version" >"$work/out" 2>&1 || status=$?
[ $status -eq 137 ] || { echo "strangers.sh: tag.sh was not killed: $status" >&2; cat "$work/out" >&2; exit 1; }
rm "$work/origin.git/hooks/post-receive"
release/tag.sh "$version" | grep "^$version is published: "
[ "$(git -C "$work/origin.git" rev-parse main^)" = "$head" ] || { echo "strangers.sh: main at origin is not one commit ahead" >&2; exit 1; }
for tag in "$version" "cmd/bsonids/$version" "analysis/$version"; do
	git -C "$work/origin.git" merge-base --is-ancestor "$tag" main && git -C "$work/origin.git" merge-base --is-ancestor main "$tag" ||
		{ echo "strangers.sh: $tag is not at main" >&2; exit 1; }
done

# Strangers have no workspace and an empty module cache. Their git takes GitHub's address to the origin.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$work/origin.git.insteadOf" GIT_CONFIG_VALUE_0="https://$library"
GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
export GOPROXY GOWORK=off GOFLAGS="-modcacherw -trimpath" GOPRIVATE=$library GOMODCACHE=$work/cache GOBIN=$work/bin

mkdir "$work/user"
cd "$work/user"
go mod init example.com/user >/dev/null 2>&1
go get "$library@$version" >/dev/null 2>&1
{
	printf 'package main\n\nimport (\n'
	go list -mod=mod "$library/..." | grep -v /internal/ | sed 's/.*/\t_ "&"/'
	printf ')\n\nfunc main() {}\n'
} >main.go
go mod tidy >/dev/null 2>&1
go run .
echo "go get $library@$version: $(grep -c '	_ ' main.go) packages"

cd "$work"
go install "$library/cmd/bsonids@$version" >/dev/null 2>&1
go install "$library/analysis/cmd/bsonidsvet@$version" >/dev/null 2>&1
[ "$(bin/bsonids --version | head -n 1)" = "bsonids $version" ] || { echo "strangers.sh: $(bin/bsonids --version), want bsonids $version" >&2; exit 1; }
"$work/bin/bsonids" show 00112233-4455-6677-8899-aabbccddeeff >/dev/null
(cd "$work/user" && "$work/bin/bsonidsvet" ./...)
echo "go install: bsonids and bsonidsvet $version"

# The sums in the tagged commit are those of the modules.
git clone --quiet "$work/origin.git" "$work/checkout"
(cd "$work/checkout/cmd/bsonids" && go build -mod=readonly -o "$work/built" .)
diff <(go version -m "$work/bin/bsonids" | grep '	dep	') <(go version -m "$work/built" | grep '	dep	')

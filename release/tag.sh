#!/usr/bin/env bash
# Publishes a version of the modules that users get: the library, the command and the analyzer.
#
# usage: release/tag.sh VERSION
#
# It makes one commit on main that requires the library by the version, and a tag of each module on that commit, and
# pushes the branch and the tags at once: the remote takes all of them or none. Until then nothing is changed, neither
# here nor there, so after a failure or an interruption the same command can be run again. When it was interrupted after
# the push, it says that the version is published.
#
# It refuses a work tree with changes, a commit other than the newest of main, a commit without green checks, a version
# without a section in CHANGELOG.md, and a tag that exists. It needs gh, logged in, for the checks. The remote is "origin".
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
	echo "tag.sh: $*" >&2
	exit 1
}

library=github.com/bsonids/bsonids
version=${1:-}
[[ $# -eq 1 && $version =~ ^v[01]\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?$ ]] ||
	fail "usage: release/tag.sh VERSION, such as v1.2.3 or v1.2.3-rc.1"
tags=("$version" "cmd/bsonids/$version" "analysis/$version") # GitHub starts no workflow for more than three at once

[ -z "$(git status --porcelain)" ] || fail "the work tree has changes: commit or remove them"
head=$(git rev-parse HEAD)
remote=$(git remote get-url --push origin)
there=$(git ls-remote "$remote") || fail "origin does not answer"

# at TAG prints the commit of a tag at the remote.
at() { awk -v tag="refs/tags/$1" '$2 == tag "^{}" { print $1 }' <<<"$there"; }
existing=()
for tag in "${tags[@]}"; do
	! grep -q "	refs/tags/$tag\$" <<<"$there" || existing+=("$tag")
done
if [ ${#existing[@]} -eq ${#tags[@]} ]; then
	commit=$(at "$version")
	git fetch --quiet origin "refs/tags/$version"
	if [ "$(at "${tags[1]}")" = "$commit" ] && [ "$(at "${tags[2]}")" = "$commit" ] &&
		git rev-parse "$commit" "$commit^" | grep -q "$head"; then
		echo "$version is published: $commit"
		exit 0
	fi
fi
[ ${#existing[@]} -eq 0 ] || fail "origin has the tag ${existing[*]} already; a tag that was published stays as it is: take the next version"
for tag in "${tags[@]}"; do
	! git show-ref --quiet --verify "refs/tags/$tag" || fail "the tag $tag exists here, and not at origin: git tag -d $tag"
done
[ "$(awk '$2 == "refs/heads/main" { print $1 }' <<<"$there")" = "$head" ] || fail "HEAD is not the newest commit of main at origin"
grep -qE "^## \[?${version#v}\]? - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
	fail "CHANGELOG.md has no section \"## ${version#v} - YYYY-MM-DD\""
checks=$(gh run list --workflow ci.yml --branch main --commit "$head" --limit 1 --json conclusion --jq '.[].conclusion') ||
	fail "gh cannot tell the result of the checks"
[ "$checks" = success ] || fail "the checks of $head are not green: ${checks:-none has ended}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd release && GOWORK=off go build -o "$work/proxy" ./proxy)
"$work/proxy" "$version" "$head" "$work/modules"
git clone --quiet --no-tags --single-branch . "$work/tree"
# What the go command takes from the files, it must not keep: only the published version may reach a module cache.
cache=$(go env GOMODCACHE)/cache/download
export GOWORK=off GOFLAGS=-modcacherw GONOSUMDB=$library GONOPROXY=none GOMODCACHE=$work/cache
GOPROXY=file://$work/modules,file://$cache,$(go env GOPROXY)
export GOPROXY
while read -r key value; do git -C "$work/tree" config "$key" "$value"; done < <(git config --local --get-regexp '^user\.')
cd "$work/tree"
# A module that replaces the library by a directory needs the same version, and no checksum.
while read -r file; do
	! grep -q "^	$library v" "$file" || go mod edit "-require=$library@$version" "$file"
done < <(git ls-files '*/go.mod' ':!analysis/testdata')
(cd cmd/bsonids && go mod tidy && go build -mod=readonly -o "$work/bsonids" .)
git commit --quiet --allow-empty --all --message "bsonids: require the library $version"
for tag in "${tags[@]}"; do git tag --annotate --message "$tag" "$tag"; done
git push --quiet --atomic "$remote" HEAD:refs/heads/main "${tags[@]/#/refs/tags/}"
echo "$version is published: $(git rev-parse HEAD)"

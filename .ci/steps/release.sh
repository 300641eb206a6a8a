# A release of the commit, built twice at different places, and what it holds.

# publish makes a version of the working tree at an origin that stands for GitHub, and puts the library into a module cache from there.
publish() {
	release/strangers.sh "$work/published" || return 1
	GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
	export GOPROXY GOPRIVATE=github.com/bsonids/bsonids GOMODCACHE=$work/modules GOFLAGS=-modcacherw
	(
		cd "$work" && export GOWORK=off GIT_CONFIG_COUNT=1 GIT_CONFIG_VALUE_0=https://github.com/bsonids/bsonids
		export GIT_CONFIG_KEY_0="url.file://$work/published/origin.git.insteadOf"
		go mod download github.com/bsonids/bsonids@v0.99.0
	)
}

# build_at DIR builds the release of the version in a clone at DIR.
build_at() {
	git -c advice.detachedHead=false clone --quiet --branch "$(git -C "$work/published/origin.git" describe --match 'v[0-9]*' main)" "$work/published/origin.git" "$1" 2>"$1.log" &&
		git -C "$1" remote set-url origin https://github.com/bsonids/bsonids.git &&
		(cd "$1" && GORELEASER=$work/bin/goreleaser .ci/release --skip=publish) >>"$1.log" 2>&1 ||
		{ tail -n 50 "$1.log"; return 1; }
}

# build_later builds a commit after the version, which has no tag.
build_later() {
	local dir=$work/later
	git clone --quiet "$work/published/origin.git" "$dir" && git -C "$dir" remote set-url origin https://github.com/bsonids/bsonids.git &&
		git -C "$dir" -c user.name=bsonids -c user.email=bsonids@example.com commit --quiet --allow-empty --message later &&
		(cd "$dir" && GORELEASER=$work/bin/goreleaser release/build.sh --snapshot --skip=publish) >"$dir.log" 2>&1 ||
		{ tail -n 50 "$dir.log"; return 1; }
	tar -xzOf "$dir"/dist/bsonids_*_linux_"$(go env GOARCH)".tar.gz bsonids >"$work/later-bsonids" && chmod +x "$work/later-bsonids" &&
		"$work/later-bsonids" --version | grep "$(git -C "$dir" rev-parse HEAD)"
}

# dependencies compares what the programs were built from with what "go install" builds from, and with the notices.
dependencies() {
	local dist="$work/release one/dist" program
	go version -m "$work/published/bin/bsonids" | grep '	dep	' >"$work/dependencies" && [ -s "$work/dependencies" ] || return 1
	for program in "$dist"/bsonids_linux_*/bsonids; do
		go version -m "$program" | grep '	dep	' | diff "$work/dependencies" - || { echo "in $program"; return 1; }
		go version -m "$program" | grep -P '^\tmod\tgithub.com/bsonids/bsonids/cmd/bsonids\tv0\.99\.0\t' || return 1
	done
	go version -m "$dist"/bsonids_{linux,darwin,windows}_*/bsonids* | awk '$1 == "dep" && $2 !~ /bsonids/ { print $2, $3 }' | sort -u |
		diff - <(grep -A1 '^=====' "$work/release one/release/generated/THIRD_PARTY_NOTICES" | grep -P '^[a-z0-9.-]+/\S+ v|^go\.\S+ v' | sort -u)
}

# hashes DIR prints the hash of every file that a release publishes.
hashes() {
	(cd "$1/dist" && find . -type f \( -name '*.tar.gz' -o -name '*.zip' -o -name '*.deb' -o -name '*.rpm' \
		-o -name '*.cdx.json' -o -name checksums.txt -o -path './image/*' \) -print0 | sort -z | xargs -0 sha256sum)
}

reproducible() {
	build_at "$work/release one" && build_at "$work/a second release" &&
		diff <(hashes "$work/release one") <(hashes "$work/a second release") && hashes "$work/release one" | awk '{ print $2 }'
}

# contents compares the names in the archives and packages with those that users are told of.
contents() {
	local dist="$work/release one/dist" man completions arch name
	man=$(cd "$work/release one/release/generated/man" && ls)
	completions='bsonids.bash bsonids.fish bsonids.ps1 bsonids.zsh'
	for name in "$dist"/bsonids_*.tar.gz "$dist"/bsonids_*.zip; do
		[ -e "$name" ] || return 1
		case $name in
		*.zip) python3 -m zipfile --list "$name" | awk 'NR > 1 { print $1 }' ;;
		*) tar -tf "$name" ;;
		esac | sed 's/\.exe$//' | sort | diff - <({
			printf '%s\n' LICENSE THIRD_PARTY_NOTICES bsonids
			printf 'completions/%s\n' $completions
			printf 'man/%s\n' $man
		} | sort) || { echo "in $name"; return 1; }
	done
	for arch in amd64 arm64; do
		for name in bsonids usr/share/bash-completion/completions/bsonids usr/share/zsh/vendor-completions/_bsonids \
			usr/share/man/man1/bsonids-scan.1.gz usr/share/doc/bsonids/copyright usr/share/doc/bsonids/THIRD_PARTY_NOTICES; do
			dpkg-deb --contents "$dist"/bsonids_*_"$arch".deb | grep "/$name\$" >/dev/null || { echo "$name is not in the deb of $arch"; return 1; }
		done
	done
	rpm --query --package --list "$dist"/bsonids-*.x86_64.rpm | grep '^/usr/share/zsh/site-functions/_bsonids$' >/dev/null &&
		(cd "$dist" && sha256sum --check --quiet checksums.txt) &&
		dpkg-deb --extract "$dist"/bsonids_*_"$(dpkg --print-architecture)".deb "$work/deb" && "$work/deb/usr/bin/bsonids" --version
}

# image pushes the image to a registry of its own and has the engine run it from there.
image() {
	local crane=$work/bin/crane log=$work/registry.log pid address status digest
	"$crane" registry serve --address 127.0.0.1:0 >"$log" 2>&1 &
	pid=$!
	for _ in {1..50}; do
		address=127.0.0.1:$(sed -n 's/.*serving on port //p' "$log")
		[ "$address" = 127.0.0.1: ] || break
		sleep 0.2
	done
	{
		digest=$(cd "$work/release one" && .ci/push-image --digest) &&
			(cd "$work/release one" && CRANE=$crane .ci/push-image "$address/bsonids" v0.99.0 "${digest#digest=}") &&
			"$crane" validate --remote "$address/bsonids:latest"
	} && if docker info >/dev/null 2>&1; then
		docker run --rm "$address/bsonids:0.99.0" --version &&
			docker run --rm "$address/bsonids:0.99.0" show 00112233-4455-6677-8899-aabbccddeeff >/dev/null
	fi
	status=$?
	kill $pid
	return $status
}

step "packages" install git rpm
step "goreleaser and crane" env GOBIN="$work/bin" sh -c "go install $goreleaser && go install $crane_module"
step "the configuration of releases" "$work/bin/goreleaser" check
step "the image's files" env -C release GOWORK=off go test ./...
step "a version, with all tags on one commit" publish
step "the same release twice" reproducible
step "programs with the dependencies of go install" dependencies
step "a commit after the version" build_later
step "what a release contains" contents
step "the image" image

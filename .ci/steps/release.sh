# A release of the commit, built twice at different places, and what it holds.

# build_at DIR builds the release of the commit in a clone at DIR.
build_at() {
	git clone --quiet . "$1" && git -C "$1" remote set-url origin https://github.com/bsonids/bsonids.git &&
		(cd "$1" && GORELEASER=$work/bin/goreleaser release/build.sh --snapshot --skip=publish) >"$1.log" 2>&1 ||
		{ tail -n 50 "$1.log"; return 1; }
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
		dpkg-deb --extract "$dist"/bsonids_*_"$(dpkg --print-architecture)".deb "$work/deb" && "$work/deb/usr/bin/bsonids" version
}

# image pushes the image to a registry of its own and has the engine run it from there.
image() {
	local crane=$work/bin/crane log=$work/registry.log pid address status
	GOBIN=$work/bin go install "$crane_module" || return 1
	"$crane" registry serve --address 127.0.0.1:0 >"$log" 2>&1 &
	pid=$!
	for _ in {1..50}; do
		address=127.0.0.1:$(sed -n 's/.*serving on port //p' "$log")
		[ "$address" = 127.0.0.1: ] || break
		sleep 0.2
	done
	{
		"$crane" push --index "$work/release one/dist/image" "$address/bsonids:test" &&
			"$crane" validate --remote "$address/bsonids:test"
	} && if docker info >/dev/null 2>&1; then
		docker run --rm "$address/bsonids:test" version &&
			docker run --rm "$address/bsonids:test" show 00112233-4455-6677-8899-aabbccddeeff >/dev/null
	fi
	status=$?
	kill $pid
	return $status
}

step "packages" install git rpm
step "goreleaser" env GOBIN="$work/bin" go install "$goreleaser"
step "the configuration of releases" "$work/bin/goreleaser" check
step "the image's files" env -C release GOWORK=off go test ./...
step "the same release twice" reproducible
step "what a release contains" contents
step "the image" image

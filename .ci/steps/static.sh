# What is found without running tests.

formatting() {
	local unformatted
	unformatted=$(gofmt -l .)
	[ -z "$unformatted" ] || { printf 'not formatted:\n%s\n' "$unformatted"; return 1; }
}

staticcheck() { each go run "$staticcheck" ./...; }

# tidy fails if go.mod or go.sum says more or less than the code. A module without replace directives names a version of
# the root that is not released yet, so that only the workspace can resolve it.
tidy() {
	local module
	for module in "${modules[@]}" release; do
		if [ "$module" = release ] || [ "$module" = . ] || grep -q '^replace\|^	github.com/bsonids.* => ' "$module/go.mod"; then
			(cd "$module" && GOWORK=off go mod tidy -diff) || return 1
		fi
	done
}

# lean fails if the root module needs more than the driver and google/uuid.
lean() {
	local direct
	direct=$(GOWORK=off go list -m -f '{{if not .Indirect}}{{.Path}}{{end}}' all | sort | tr '\n' ' ')
	[ "$direct" = "github.com/bsonids/bsonids github.com/google/uuid go.mongodb.org/mongo-driver/v2 " ] ||
		{ echo "the root module depends on: $direct"; return 1; }
}

scripts() {
	# The steps are sourced: they share their variables.
	shellcheck --severity=warning --shell=bash --exclude=SC2034,SC2154 .ci/run .ci/release .ci/push-image .ci/resolve-images .ci/fuzz .ci/versions.sh .ci/steps/*.sh &&
		git ls-files -z '*.sh' ':!.ci/' | xargs -0 shellcheck --severity=warning &&
		go run "$actionlint"
}

# analyzer runs the analyzer for users' code on this repository. Tests hold what it finds on purpose.
analyzer() {
	local module
	(cd analysis && go build -o "$work/bin/" ./cmd/bsonidsvet) || return 1
	for module in . bench integration cmd/bsonids; do
		(cd "$module" && "$work/bin/bsonidsvet" -test=false ./...) || return 1
	done
}

# line_ends fails if a clone on a system that writes CRLF has other bytes than this one.
line_ends() {
	git -c core.autocrlf=true clone --quiet . "$work/clone" && ! grep --recursive --files-with-matches --binary-files=without-match \
		--exclude-dir=.git $'\r' "$work/clone" && (cd "$work/clone/docs" && sha256sum -- *.md) | (cd docs && sha256sum --check --quiet)
}

spelling() { git ls-files -z ':!*.sum' ':!*.export' ':!LICENSE' | xargs -0 go run "$misspell" -error; }

step "packages" install gcc libc6-dev git shellcheck
step "formatting" formatting
step "spelling" spelling
step "line ends" line_ends
step "vet" each go vet ./...
step "staticcheck" staticcheck
step "the analyzer finds nothing here" analyzer
step "go.mod and go.sum are tidy" tidy
step "the root module depends on the driver and google/uuid alone" lean
step "scripts and workflows" scripts

if curl --silent --fail --max-time 20 --output /dev/null https://vuln.go.dev/index/db.json; then
	step "known vulnerabilities" each go run "$govulncheck" ./...
else
	skip "known vulnerabilities" "the database vuln.go.dev cannot be reached from here"
fi

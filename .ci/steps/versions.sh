# Other versions of Go and of the driver, other processors, other systems.

# with_go VERSION runs the tests of the root module with that Go.
with_go() { GOWORK=off GOTOOLCHAIN=$1 go test -short ./...; }

# newest_driver runs the tests of all modules with the newest version of the driver, in a workspace with one more module that
# requires it, unless the other steps have it already. go.mod of the root names the oldest, which the step "the root module alone"
# tests.
newest_driver() (
	local driver=go.mongodb.org/mongo-driver/v2 dir=$work/newest module newest
	newest=$(cd "${TMPDIR:-/tmp}" && GOWORK=off go list -m -f '{{.Version}}' $driver@latest) || return 1
	if [ "$(go list -m -f '{{.Version}}' $driver)" = "$newest" ]; then
		echo "the workspace has $newest: every other step tests it"
		return
	fi
	mkdir "$dir" && (cd "$dir" && GOWORK=off go mod init newest && GOWORK=off go get "$driver@$newest") || return 1
	export GOWORK=$dir/go.work
	go work init "$dir" || return 1
	for module in "${modules[@]}"; do go work use "$PWD/$module" || return 1; done
	cp go.work.sum "$dir/go.work.sum"
	BSONIDS_SERVER=embedded go test -short ./... ./analysis/... ./bench/... ./cmd/bsonids/... ./integration/...
)

# cross compiles the root module and its tests for a target, and runs them if an emulator or the machine itself can.
cross() {
	local goarch=$1
	shift
	GOWORK=off GOARCH=$goarch go vet ./... && GOWORK=off GOARCH=$goarch go test -short "$@" ./...
}

# elsewhere compiles what users run for other systems and processors, and its tests, and runs the command's packages as 32-bit
# programs, with flags of go test. The tests that need a server are compiled for the systems on which users run them.
elsewhere() {
	local target
	for target in windows/amd64 darwin/arm64; do
		GOOS=${target%/*} GOARCH=${target#*/} go vet ./... ./cmd/bsonids/... ./cmd/bsonids/servertest/... ./integration/... || return 1
	done
	for target in 386 s390x; do
		GOARCH=$target go vet ./cmd/bsonids/... || return 1
	done
	GOARCH=$narrow go test -short "$@" ./cmd/bsonids/internal/...
}

step "packages" install gcc libc6-dev git qemu-user
for version in "$oldest_go" "$newest_go"; do
	if GOTOOLCHAIN=$version go version >/dev/null 2>&1; then
		step "the root module with $version" with_go "$version"
	else
		skip "the root module with $version" "that Go cannot be had here"
	fi
done
step "all modules with the newest driver" newest_driver

# An emulated process cannot start itself anew, which the tests left out do, except TestRead and TestNewUUIDAtInCopies: they count
# on a processor that is fast enough to read the clock twice in a millisecond.
emulated=(-skip 'TestProcessValue|TestReexecutedProcess|TestFIPS|^TestRead$|^TestNewUUIDAtInCopies$|TestDump(DiskFull|Kill|Pipe)$' -exec)

narrow=386 as_narrow=()
if ! GOWORK=off GOARCH=386 go test -run '^$' ./internal/gregorian >/dev/null; then
	# The kernel runs no 386, and Go's threads do not run in qemu-i386: arm is 32 bits wide too.
	step "32-bit x86, compiled only" cross 386 -exec true
	narrow=arm as_narrow=("${emulated[@]}" qemu-arm)
fi
step "32-bit ($narrow)" cross $narrow "${as_narrow[@]}"
if command -v qemu-s390x >/dev/null; then
	step "big-endian" cross s390x "${emulated[@]}" qemu-s390x
else
	step "big-endian, compiled only" cross s390x -exec true
fi
step "other systems" elsewhere "${as_narrow[@]}"

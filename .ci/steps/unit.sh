# Tests that need no server but the embedded one.

# root_alone tests with this Go only if the oldest cannot be had, with which the group "versions" runs the same tests.
root_alone() {
	GOWORK=off go build ./... && GOWORK=off go vet ./... || return 1
	GOTOOLCHAIN=$oldest_go go version >/dev/null 2>&1 || GOWORK=off go test -short ./...
}

embedded() { BSONIDS_SERVER=embedded quietly "$@"; }

# raced runs the tests of everything that talks to a server with the race detector. The server is a process of its own without the
# detector, under which FerretDB and SQLite take most of the time.
raced() {
	go build -o "$work/ferretserver" ./integration/cmd/ferretserver || return 1
	beside 'Waiting for connections on' "$work/ferretserver" -addr 127.0.0.1:0 -dir ""
	on_server "mongodb://$(sed -n 's/^Waiting for connections on \([^,]*\),.*/\1/p' "$work/server.log")/" -race "$@" ./cmd/bsonids/...
	alone $?
}

step "packages" install gcc libc6-dev git
step "PyMongo" python
step "the README's tests" embedded ./... ./integration/...
step "the README's quickstart" go run ./integration/cmd/quickstart
step "the root module alone" root_alone
step "the other modules" embedded -short ./analysis/... ./bench/... ./cmd/bsonids/...
step "every benchmark runs" go test -run '^$' -bench . -benchtime 1x ./bench
step "race detector" quietly -race -short ./...
step "race detector, on a server" raced -skip 'TestKill|TestInterrupt'
step "interrupted conversions, in full" embedded -timeout 30m -run 'TestKill|TestInterrupt' ./cmd/bsonids/servertest
step "packages" install qemu-system-x86 linux-image-cloud-amd64
step "ObjectIDs, the long cases" env CGO_ENABLED=0 BSONIDS_LONG_TESTS=1 go test -count=1 ./objectidgen

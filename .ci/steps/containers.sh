# Servers in containers, which the tests stop, kill and start again on their data.

# in_container IMAGE PACKAGE… runs tests on an image. No image of testcontainers' reaper is pulled; the tests remove
# their containers themselves.
in_container() {
	local image=$1
	shift
	TESTCONTAINERS_RYUK_DISABLED=true TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1 BSONIDS_SERVER=container \
		BSONIDS_MONGO_IMAGE=$image quietly -count=1 -p 2 -timeout 30m "$@"
}

# ferretdb runs what stops the server; the group "unit" runs the rest on the same server, embedded.
ferretdb() {
	integration/container/build.sh bsonids/ferretserver:test &&
		in_container bsonids/ferretserver:test ./integration/container ./integration/faults ./integration/mongotest
}

# secantus runs what stops the server; the group "servers" runs the rest on it, faster.
secantus() {
	integration/container/secantus/build.sh "$servers/wheels" "$("$servers/python-with-pymongo")" bsonids/secantus:test &&
		in_container bsonids/secantus:test ./integration/container ./integration/faults ./integration/mongotest
}

step "PyMongo" python
if ! docker info >/dev/null 2>&1; then
	skip "containers" "no Docker engine answers"
elif [ -n "${BSONIDS_MONGO_IMAGE:-}" ]; then
	step "containers of $BSONIDS_MONGO_IMAGE" in_container "$BSONIDS_MONGO_IMAGE" ./integration/... ./cmd/bsonids/... ./cmd/bsonids/servertest/...
else
	step "containers of FerretDB" ferretdb
	if [ -d "$servers/wheels" ]; then
		step "packages" install debootstrap
		step "containers of SecantusDB" secantus
	else
		skip "containers of SecantusDB" "there is no $servers/wheels"
	fi
fi

# The integration suites, and the short part of the command's, on a server over TCP: the one of MONGODB_URI, else a second
# server that is at hand. Neither is the embedded one.

# free_port prints a TCP port of loopback that nothing listens on.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

on_second_server() {
	local port
	port=$(free_port) && mkdir "$work/second" || return 1
	beside listening "$servers/second-server" "$port" "$work/second"
	# It may not answer for ten seconds, after which the command calls a server lost. Those that are skipped need many
	# minutes on it, and the group "unit" runs them in full.
	on_server "mongodb://127.0.0.1:$port/?directConnection=true&serverSelectionTimeoutMS=60000" -skip 'TestMistakes|^TestKill|^TestInterrupt'
	alone $?
}

step "PyMongo" python
if [ -n "${MONGODB_URI:-}" ]; then
	step "the server of MONGODB_URI" on_server "$MONGODB_URI"
elif [ -x "$servers/second-server" ]; then
	second=yes
	step "the second server" on_second_server
else
	skip "the second server" "MONGODB_URI is not set, and there is no $servers/second-server"
fi

# Random cases and fuzzing for some minutes, with other values each time.

step "documents beside the driver" go test ./internal/structcodec -run TestDifferential -cases 100000000 -for 10m -values 100 \
	-seed "$RANDOM" -timeout 20m
step "fuzzing, every target" .ci/fuzz "${BSONIDS_FUZZ_SECONDS:-1860}"

# At most 3 % of all changes may survive in the first packages and 6 % in the others. A sample may have a few more by chance.
step "changed code, a sample of the packages that hold bytes" tool mutants -seed "$RANDOM" -sample 60 -allow 5 ./uuidrep ./bsoncodec ./autoid \
	./cmd/bsonids/internal/rule ./cmd/bsonids/internal/undolog
step "changed code of the undo, all of it" tool mutants -allow 3 -match 'undo|logs' ./cmd/bsonids/internal/migrate
step "changed code, a sample of the others" tool mutants -seed "$RANDOM" -sample 60 -allow 8 ./internal/structcodec ./clientopt ./cursors ./mixedrep

step "verbs that are killed at every state of their files" quietly -count=1 -timeout 120m -run TestKillStates ./cmd/bsonids/servertest -state-kills 200
step "random histories of files, records and runs" quietly -count=1 -timeout 60m -parallel 24 -run TestHistories ./cmd/bsonids/internal/cli -histories 500 -history-seed "$RANDOM"
step "the same on a server" quietly -count=1 -timeout 60m -parallel 12 -run TestHistories ./cmd/bsonids/servertest -histories 100 -history-seed "$RANDOM"

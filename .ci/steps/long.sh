# Random cases and fuzzing for some minutes, with other values each time.

step "documents beside the driver" go test ./internal/structcodec -run TestDifferential -cases 100000000 -for 10m -values 100 \
	-seed "$RANDOM" -timeout 20m
step "fuzzing, every target" .ci/fuzz "${BSONIDS_FUZZ_SECONDS:-1860}"
step "changed code, a sample of the packages that hold bytes" tool mutants -seed "$RANDOM" -sample 60 -allow 5 ./uuidrep ./bsoncodec ./autoid
step "changed code, a sample of the others" tool mutants -seed "$RANDOM" -sample 30 -allow 10 ./internal/structcodec ./clientopt ./cursors ./mixedrep
step "verbs that are killed at every state of their files" quietly -count=1 -timeout 120m -run TestKillStates ./cmd/bsonids/servertest -state-kills 200

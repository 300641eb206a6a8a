# Random cases and fuzzing for some minutes, with other values each time.

step "documents beside the driver" go test ./structcodec -run TestDifferential -cases 100000000 -for 10m -values 100 \
	-seed "$RANDOM" -timeout 20m
step "fuzzing, every target" .ci/fuzz "${BSONIDS_FUZZ_SECONDS:-1860}"

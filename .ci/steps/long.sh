# Random cases and fuzzing for some minutes, with other values each time.

step "documents beside the driver" go test ./structcodec -run TestDifferential -cases 100000000 -for 10m -values 100 \
	-seed "$RANDOM" -timeout 20m
for target in FuzzDecode FuzzCase; do
	step "$target" go test ./structcodec -run '^$' -fuzz "^$target\$" -fuzztime 60s
done
for target in dump:FuzzRead offline:FuzzOplogEntry offline:FuzzMetadata offline:FuzzDecisions plan:FuzzParse; do
	step "${target#*:}" go test "./cmd/bsonids/internal/${target%:*}" -run '^$' -fuzz "^${target#*:}\$" -fuzztime 60s -fuzzminimizetime 10x
done

package scan

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Text of 32 digits counts as UUIDs if its values have the variant and a version. Checksums do not.
func TestDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for name, tt := range map[string]struct {
		value func(*rand.Rand, int) [16]byte
		text  int64
	}{
		"version 4": {v4, 100},
		"version 7": {v7, 100},
		"checksums": {md5Sum, 0},
		"random":    {noBits, 0},
	} {
		s := newScan(t)
		c := s.collector(t, "c")
		for i := range 100 {
			u := tt.value(r, i)
			collect(t, c, bson.D{{Key: "id", Value: hex.EncodeToString(u[:])}, {Key: "n", Value: int32(i)}})
		}
		fields := s.judged(t)[0].Fields
		if tt.text == 0 && len(fields) != 0 || tt.text > 0 && (len(fields) != 1 || fields[0].Counts != Counts{Text: tt.text}) {
			t.Errorf("%s: %+v", name, fields)
		}
	}
}

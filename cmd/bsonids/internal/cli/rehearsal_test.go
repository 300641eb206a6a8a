package cli

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A rehearsal ends with the exit code of the run that writes after it: values that are malformed, or that do not show that they are
// of the source, are left by both.
func TestRehearsalPredicts(t *testing.T) {
	java := func(i int) bson.Binary {
		return kindstest.Stored([16]byte{1, byte(i), byte(i * 7), 6: 0x40 | byte(i%16), 7: byte(i * 31), 8: 0x80 | byte(i%64), 9: byte(i * 13), 15: 1}, "javaLegacy")
	}
	nilUUID := bson.Binary{Subtype: 3, Data: make([]byte, 16)}
	text := "123e4567-e89b-42d3-a456-426614174"
	for name, tt := range map[string]struct {
		odd  []any
		code int
	}{
		"all are converted":   {nil, failure.ExitOK},
		"the nil UUID":        {[]any{nilUUID}, failure.ExitOK},
		"malformed":           {[]any{bson.Binary{Subtype: 3, Data: []byte{1, 2}}}, failure.ExitIncomplete},
		"no version":          {[]any{undetermined(t, 3)[2].Lookup("a")}, failure.ExitIncomplete},
		"text":                {[]any{text + "000", text + "001"}, failure.ExitOK},
		"text without a form": {[]any{text + "000", "123e4567-e89b-f2d3-0456-426614174001"}, failure.ExitIncomplete},
	} {
		s := memory.Start(t)
		s.FerretDB = "v1.24.0"
		var docs []bson.Raw
		for i := range 60 {
			docs = append(docs, kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: java(i)}}))
		}
		for i, v := range tt.odd {
			docs = append(docs, kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "a", Value: v}}))
		}
		s.Put(s.Client.Database("shop").Collection("orders"), docs...)
		dir := trusting(t, s, func(p *plan.Plan) {
			for i := range p.Collections[0].Fields {
				f := &p.Collections[0].Fields[i]
				switch f.Stored {
				case kinds.Subtype3:
					f.Decision = plan.Convert("javaLegacy")
				case kinds.OfText:
					f.Decision = plan.Convert("text")
				}
			}
		})
		for _, args := range [][]string{{"apply", dir, "--uri", s.URI}, {"apply", dir, "--write", "--uri", s.URI}} {
			if r := command(t, args...); r.code != tt.code {
				t.Errorf("%s: %v: exit code %d, want %d\n%s%s", name, args, r.code, tt.code, r.stdout, r.stderr)
			}
		}
	}
}

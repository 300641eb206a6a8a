package servertest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// One collection is converted in place, into a copy and as a dump, within one subtype and to another one:
// the counts, the reasons, the exit codes and the values are the same. Values that are the same in both
// orders are neither converted nor left.
func TestEveryWay(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	r := rand.New(rand.NewPCG(26, 2))
	stored := func(order uuidrep.Representation) bson.Binary {
		var u uuid.UUID
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
		return in(u, order)
	}
	csharp := func() bson.Binary { return stored(uuidrep.CSharpLegacy) }
	same := bson.Binary{Subtype: 3, Data: make([]byte, 16)}
	var docs []any
	var dump []byte
	for i := range 60 {
		d := bson.D{
			{Key: "_id", Value: int32(i)}, {Key: "a", Value: csharp()}, {Key: "same", Value: same}, {Key: "text", Value: uuid.NewString()},
			{Key: "deep", Value: bson.A{csharp(), "x", bson.D{{Key: "b", Value: bson.A{same, csharp()}}}}},
			{Key: "go", Value: bson.D{{Key: "uuid", Value: bson.Binary{Data: csharp().Data}}}}, {Key: "short", Value: bson.Binary{Subtype: 3, Data: make([]byte, 9)}},
		}
		switch i % 3 {
		case 0:
			d[1].Value = stored(uuidrep.JavaLegacy)
		case 1:
			d = append(d, bson.E{Key: "sum", Value: bson.Binary{Subtype: 3, Data: fmt.Appendf(nil, "checksum %7d", i)}})
		}
		docs, dump = append(docs, d), append(dump, marshal(t, d)...)
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("c.bson"), dump, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"javaLegacy", "standard"} {
		coll, source := db.Collection("in_"+to), db.Collection("to_"+to)
		insert(t, coll, docs)
		insert(t, source, docs)
		conv := []string{"convert", "--db", s.Database(), "--from", "csharpLegacy", "--to", to, "--output", "json", "--examples", "0"}
		type result struct {
			Values     int64            `json:"valuesChanged"`
			Documents  int64            `json:"documentsSkipped"`
			Left       int64            `json:"valuesSkipped"`
			SkippedFor map[string]int64 `json:"skippedFor"`

			Collections []struct {
				SkippedFor map[string]int64 `json:"skippedFor"`
			} `json:"collections"` // of a dump
		}
		var want result
		for i, way := range [][]string{{"--collection", coll.Name()}, {"--collection", source.Name(), "--into", source.Name() + "_copy"}, {"--dump", file("c.bson"), "--collection", "c"}} {
			for _, write := range []bool{false, true} {
				args := slices.Concat(conv, way)
				switch {
				case i == 2 && write:
					args = append(args, "--out", file(to+".bson"), "--skip-list", file(to+".skipped"))
				case i < 2 && write:
					args = append(args, "--write", "--references", "0", "--state", file(fmt.Sprint(to, i)))
					if i == 0 {
						args = append(args, "--undo-log", file(to+".undo"))
					}
					args = append(args, gentle...)
				case i < 2:
					args = append(args, "--references", "0")
				}
				var report struct {
					Result result `json:"result"`
				}
				var server target = s
				if i == 2 {
					server = nil
				}
				out := command(t, server, args...).want(t, failure.ExitIncomplete)
				if err := json.Unmarshal([]byte(out.stdout), &report); err != nil {
					t.Fatal(err)
				}
				got := report.Result
				if len(got.Collections) == 1 {
					got.SkippedFor = got.Collections[0].SkippedFor
				}
				if i == 0 && !write {
					want = got
				}
				if got.Values != want.Values || got.Documents != want.Documents || got.Left != want.Left || !maps.Equal(got.SkippedFor, want.SkippedFor) || got.Values == 0 || got.Left == 0 {
					t.Errorf("to %s, %q, write %v: %+v, want %+v", to, way, write, got, want)
				}
			}
		}
		inPlace, copied := all(t, coll), all(t, db.Collection(source.Name()+"_copy"))
		b, err := os.ReadFile(file(to + ".bson"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; len(b) > 0; n++ {
			doc := bson.Raw(b[:int(binary.LittleEndian.Uint32(b))])
			b = b[len(doc):]
			if id := doc.Lookup("_id").String(); !slices.Equal(doc, inPlace[id]) || !slices.Equal(doc, copied[id]) {
				t.Errorf("to %s: in place %v\ncopied %v\ndump %v", to, inPlace[id], copied[id], doc)
			}
		}
		if n != len(docs) {
			t.Errorf("to %s: %d documents", to, n)
		}
	}
}

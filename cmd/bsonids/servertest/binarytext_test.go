package servertest

import (
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
)

// The examples of RFC 9562, appendices A and B, and the nil UUID. Their bytes are their digits.
var ofRFC = []string{
	"C232AB00-9414-11EC-B3C8-9F6BDECED846", "5df41881-3aed-3515-88a7-2f4a814cf09e", "919108f7-52d1-4320-9bac-f847db4148a8", "2ed6657d-e927-568b-95e1-2665a8aea6a2",
	"1EC9414C-232A-6B00-B3C8-9F6BDECED846", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "2489E9AD-2EE2-8E00-8EC9-32D5F69181C0", "00000000-0000-0000-0000-000000000000",
}

// Collections with nothing but the text of UUIDs in binary values, as programs have written them, go from scan to undo, and the same
// as dumps: found, in the plan and left by it, and converted and restored byte for byte if a person decides so.
func TestBinaryText(t *testing.T) {
	digits := func(s string) string { return strings.ReplaceAll(s, "-", "") }
	hyphens := func(s string) string { return s }
	for name, tt := range map[string]struct {
		subtype byte
		text    func(string) string
	}{
		"PHP Doctrine":            {3, hyphens},
		"Mongoose Buffer":         {0, hyphens},
		"old Spring":              {3, digits},
		"an old driver":           {2, hyphens},
		"digits of subtype 4":     {4, digits},
		"upper case, subtype 4":   {4, strings.ToUpper},
		"Doctrine, in lower case": {3, strings.ToLower},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := started(t)
			c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c"), want: make(map[string]bson.Raw)}
			var old, converted []any
			for i, text := range ofRFC {
				octets, err := hex.DecodeString(digits(text))
				if err != nil {
					t.Fatal(err)
				}
				doc := func(v any) bson.D {
					return bson.D{{Key: "_id", Value: int32(i)}, {Key: "l", Value: bson.A{bson.D{{Key: "id", Value: v}}, "tail"}}}
				}
				old = append(old, doc(bson.Binary{Subtype: tt.subtype, Data: []byte(tt.text(text))}))
				converted = append(converted, doc(bson.Binary{Subtype: 4, Data: octets}))
				note(c.want, converted[i].(bson.D))
			}
			insert(t, c.coll, old)
			command(t, s, "scan", "--db", db.Name(), "--all", "--fail-on", "legacy", "--output", "json").want(t, failure.ExitIncomplete).prints(t, `"binaryText": 8`)
			c.plan()
			c.run(failure.ExitUsage, "apply --write").says(t, "every field is left")
			c.plan(convertFields("binaryText"))
			c.ok("apply", "apply --write", "verify")
			c.converted()
			command(t, s, "scan", "--db", db.Name(), "--all", "--fail-on", "legacy,generic,mixed").want(t, failure.ExitOK)
			c.ok("undo --write")
			c.unchanged()

			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			dumptest.Directory(t, in, false, dumptest.Collection{Database: "d", Name: "c", Documents: old})
			command(t, nil, "scan", "--dump", in, "--fail-on", "legacy").want(t, failure.ExitIncomplete)
			convertDump(t, in, out, failure.ExitOK, func(p *plan.Plan) { convertFields("binaryText")(p) })
			want := ""
			for _, doc := range converted {
				want += string(marshal(t, doc.(bson.D)))
			}
			if got := text(t, filepath.Join(out, "d", "c.bson")); got != want {
				t.Errorf("got %x\nwant %x", got, want)
			}
		})
	}
}

// Text in binary values that shows no version, and digits that may be checksums, are left and listed. They are converted from the list
// if a person vouches for them later, and restored.
func TestBinaryTextTrustedLater(t *testing.T) {
	for _, subtype := range []byte{0, 2, 3} {
		var docs []any
		for i := range 40 {
			s := v4(i).String()
			switch i {
			case 5:
				s = "12345678-0000-0000-0000-000000000001" // without variant and version
			case 6:
				s = "d41d8cd98f00b204e9800998ecf8427e" // the MD5 of nothing, as RFC 1321 has it
			}
			docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: bson.Binary{Subtype: subtype, Data: []byte(s)}}})
		}
		c := setting(t, docs, convertFields("binaryText", "id"))
		c.run(failure.ExitIncomplete, "apply --write")
		if b := text(t, skipList(t, c.dir)); strings.Count(b, "\n") != 2 {
			t.Errorf("subtype %d: %s", subtype, b)
		}
		c.run(failure.ExitIncomplete, "verify").prints(t, "all are converted but 2")
		changePlan(t, c.dir, trusted("id"))
		c.ok("apply --write")
		wantNew(t, c.coll, "id")
		c.ok("verify", "undo --write")
		c.unchanged()
	}
}

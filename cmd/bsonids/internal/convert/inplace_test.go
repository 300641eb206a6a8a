package convert

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// A document with too many values for one update is skipped and reported. The other documents are
// converted.
func TestTooManyValues(t *testing.T) {
	c := conversion(t, "javaLegacy")
	small, err := c.Edits(marshal(t, bson.D{{Key: "_id", Value: "small"}, {Key: "a", Value: kindstest.Value("javaLegacy")}}))
	if err != nil {
		t.Fatal(err)
	}
	list := make(bson.A, 200_000)
	for i := range list {
		list[i] = kindstest.Value("javaLegacy")
	}
	doc := marshal(t, bson.D{{Key: "_id", Value: "big"}, {Key: "l", Value: list}})
	big, err := c.Edits(doc)
	if err != nil || len(doc) > 16<<20 || len(big.Changes) != len(list) {
		t.Fatalf("%d octets, %d changes, %v", len(doc), len(big.Changes), err)
	}
	for _, p := range []rule.Edits{small, big} {
		m := p.Model(bson.RawValue{})
		if n := len(m.Filter.(bson.Raw)) + len(m.Update.(bson.Raw)); n > p.Size() || p.Size() > n+100 {
			t.Errorf("%d octets, said to be %d", n, p.Size())
		}
	}
	skips, err := CreateSkipList(filepath.Join(t.TempDir(), "skips"), "d.c")
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{run: newRun(nil, Options{Selection: Selection{Conversion: c}, SkipList: skips})}
	if !r.mayWrite(edit{Edits: small}) || r.mayWrite(edit{Edits: big}) || r.res.Skipped != 1 {
		t.Errorf("%+v", r.res)
	}
	closed(t, skips)
	if b, err := os.ReadFile(skips.Path()); err != nil || bytes.Count(b, []byte("\n")) != len(list) {
		t.Errorf("%d values are listed, %v", bytes.Count(b, []byte("\n")), err)
	}
}

// A Skip marshals to valid JSON for any _id and any reason.
func TestSkipJSON(t *testing.T) {
	id := marshal(t, bson.D{{Key: "_id", Value: "a\x01\"<é"}}).Lookup("_id")
	const reason = "the field \x01\x7f\a\U000e0001\"\\ is odd"
	b, err := json.Marshal(Skip{id, reason})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ID     string `json:"_id"`
		Reason string
	}
	if err := json.Unmarshal(b, &got); err != nil || got.Reason != reason || got.ID != "a\x01\"<é" {
		t.Errorf("%s: %+v, %v", b, got, err)
	}
}

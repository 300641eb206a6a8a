package convert

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// For any order in which batches end, the position of the checkpoint is after done batches only,
// and its offset is before every entry of the other batches.
func TestTracker(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		tr := newTracker()
		n := 1 + r.IntN(12)
		done, logged := make([]bool, n), make([]int64, n)
		var size int64 = 100
		var open []int
		begun := 0
		check := func() {
			at := tr.checkpoint(func() int64 { return size })
			position, offset := at.position, at.offset
			upTo := -1
			if position.Type != 0 {
				upTo = int(position.Int32())
			}
			if at.counts.Changed != int64(upTo+1) || at.counts.Values != 2*at.counts.Changed {
				t.Fatalf("position %d with the counts %+v", upTo, at.counts)
			}
			for i := range begun {
				if i <= upTo && !done[i] {
					t.Fatalf("position %d, but batch %d isn't done", upTo, i)
				}
				if i > upTo && logged[i] > 0 && logged[i] < offset {
					t.Fatalf("position %d and offset %d, but batch %d has entries from %d on", upTo, offset, i, logged[i])
				}
			}
		}
		for begun < n || len(open) > 0 {
			if begun < n && (len(open) == 0 || r.IntN(2) == 0) {
				tr.begin(begun, marshal(t, bson.D{{Key: "v", Value: int32(begun)}}).Lookup("v"))
				open = append(open, begun)
				begun++
			} else {
				k := r.IntN(len(open))
				b := open[k]
				if r.IntN(2) == 0 {
					tr.log(b, func() int64 { return size })
					check() // before the entry is in the log
					if logged[b] == 0 {
						logged[b] = size
					}
					size += 10
				} else {
					done[b] = true
					tr.done(b, Totals{Changed: 1, Values: 2})
					open = append(open[:k], open[k+1:]...)
				}
			}
			check()
		}
		if at := tr.checkpoint(func() int64 { return size }); int(at.position.Int32()) != n-1 || at.offset != size {
			t.Fatalf("at the end: %+v", at)
		}
	}
	tr := newTracker()
	tr.hold(7)
	tr.begin(0, bson.RawValue{})
	tr.release(0)
	if at := tr.checkpoint(func() int64 { return 100 }); at.offset != 7 {
		t.Errorf("held entries are let go at %d", at.offset)
	}
	tr.done(0, Totals{})
	if at := tr.checkpoint(func() int64 { return 100 }); at.offset != 100 {
		t.Errorf("entries are held for ever: %d", at.offset)
	}
}

// A test cannot send SIGKILL at every instruction, but it can set up the result: an undo log with
// at least the changes that the server received.
func TestReconsider(t *testing.T) {
	c := conversion(t, "javaLegacy")
	doc := func(v any) bson.Raw {
		return marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: v}})
	}
	before, err := c.Plan(doc(kindstest.Value("javaLegacy")))
	if err != nil {
		t.Fatal(err)
	}
	entry := Entry{ID: before.ID, Changes: before.Changes}
	for name, tt := range map[string]struct {
		now           any
		changes, kept int
	}{
		"not asked for":         {kindstest.Value("javaLegacy"), 1, 0},
		"done":                  {kindstest.Value("standard"), 0, 1},
		"changed by another":    {kindstest.Value("pythonLegacy"), 1, 0},
		"to another new value":  {bson.Binary{Subtype: 4, Data: make([]byte, 16)}, 0, 0},
		"of another type":       {"text", 0, 0},
		"not of sixteen octets": {bson.Binary{Subtype: 3, Data: []byte{1}}, 0, 0},
	} {
		r := &runner{run: &run{Options: Options{Selection: Selection{Conversion: c}}}, inFlight: map[string]Entry{documents.Key(before.ID): entry}}
		now, err := c.Plan(doc(tt.now))
		if err != nil {
			t.Fatal(err)
		}
		p := Planned{Plan: now}
		r.reconsider(&p, doc(tt.now))
		if len(p.Changes) != tt.changes || len(p.Skipped) > 0 || len(p.kept) != tt.kept || !p.again || len(r.inFlight) != 0 {
			t.Errorf("%s: %+v, %d in flight", name, p, len(r.inFlight))
		}
	}
}

// A document with too many values for one update is skipped and reported. The other documents are
// converted.
func TestTooManyValues(t *testing.T) {
	c := conversion(t, "javaLegacy")
	small, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: "small"}, {Key: "a", Value: kindstest.Value("javaLegacy")}}))
	if err != nil {
		t.Fatal(err)
	}
	list := make(bson.A, 200_000)
	for i := range list {
		list[i] = kindstest.Value("javaLegacy")
	}
	doc := marshal(t, bson.D{{Key: "_id", Value: "big"}, {Key: "l", Value: list}})
	big, err := c.Plan(doc)
	if err != nil || len(doc) > 16<<20 || len(big.Changes) != len(list) {
		t.Fatalf("%d octets, %d changes, %v", len(doc), len(big.Changes), err)
	}
	for _, p := range []rule.Plan{small, big} {
		m := p.Model(bson.RawValue{})
		if n := len(m.Filter.(bson.Raw)) + len(m.Update.(bson.Raw)); n > p.Size() || p.Size() > n+100 {
			t.Errorf("%d octets, said to be %d", n, p.Size())
		}
	}
	skips, err := OpenSkipList(filepath.Join(t.TempDir(), "skips"), "d.c", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{run: newRun(nil, Options{Selection: Selection{Conversion: c}, SkipList: skips})}
	if !r.mayWrite(Planned{Plan: small}) || r.mayWrite(Planned{Plan: big}) || r.res.Skipped != 1 {
		t.Errorf("%+v", r.res)
	}
	if n, err := skips.documents(); err != nil || n != 1 || skips.Close() != nil {
		t.Errorf("%d documents are listed, %v", n, err)
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

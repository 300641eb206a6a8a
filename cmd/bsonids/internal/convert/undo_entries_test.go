package convert

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// A value that an entry does not find is not missed if a later entry is about its path, in the same log or in a later one.
func TestStillUnmet(t *testing.T) {
	c := conversion(t, "javaLegacy")
	for _, in := range [][]int{{1, 1, 1, 1}, {1, 2, 3, 3}, {1, 1, 2, 3}} {
		dir := t.TempDir()
		all := make(map[int]*undolog.Log)
		for i, id := range []string{"a", "b", "a", "c"} {
			if all[in[i]] == nil {
				all[in[i]] = newLog(dir, in[i])
			}
			appended(t, all[in[i]], c, id)
		}
		logs := logsIn(t, dir)
		var left []unmet
		if err := logs.All(func(e undolog.Entry) error {
			left = append(left, unmet{id: e.ID, path: e.Changes[0].Path, at: e.At}, unmet{id: e.ID, path: "other", at: e.At})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		left, err := stillUnmet(logs, left)
		var got []string
		for _, m := range left {
			if m.path != "other" {
				got = append(got, m.id.StringValue())
			}
		}
		if err != nil || len(left) != 7 || !slices.Equal(got, []string{"b", "a", "c"}) {
			t.Errorf("%v: %d values, %q, %v", in, len(left), got, err)
		}
		for _, l := range all {
			closed(t, l)
		}
		closed(t, logs)
		if _, err := stillUnmet(logs, left); err == nil {
			t.Error("the logs are closed")
		}
		if left, err := stillUnmet(logs, nil); left != nil || err != nil {
			t.Errorf("nothing to look for: %v, %v", left, err)
		}
	}
}

// Entries come in batches that are full, unless the next entry is about a document in the batch or in another log, and an
// error ends them.
func TestBatchesOfEntries(t *testing.T) {
	if err := entries(nil, 1, func([]undolog.Entry) error { t.Error("a batch without a log"); return nil }); err != nil {
		t.Error(err)
	}
	c, dir := conversion(t, "javaLegacy"), t.TempDir()
	first, second := newLog(dir, 1), newLog(dir, 2)
	appended(t, second, c, "a", "b", "a", "c", "d", "e", "e")
	appended(t, first, c, "f", "g")
	closed(t, first)
	closed(t, second)
	for size, want := range map[int]string{1: "a b a c d e e f g ", 2: "ab ac de e fg ", 3: "ab acd e e fg ", 10: "ab acde e fg "} {
		logs := logsIn(t, dir)
		var got strings.Builder
		if err := entries(logs, size, func(b []undolog.Entry) error {
			for _, e := range b {
				got.WriteString(e.ID.StringValue())
			}
			got.WriteByte(' ')
			return nil
		}); err != nil || got.String() != want {
			t.Errorf("batches of %d: got %q and %v, want %q", size, got.String(), err, want)
		}
		calls := 0
		if err := entries(logs, size, func([]undolog.Entry) error { calls++; return errTest }); !errors.Is(err, errTest) || calls != 1 {
			t.Errorf("an error after %d calls: got %v", calls, err)
		}
	}
}

// A batch has about as many bytes as one update: 16 MiB, and one entry.
func TestBatchesOfLargeEntries(t *testing.T) {
	dir := t.TempDir()
	l := newLog(dir, 1)
	for i := range 7 {
		change := rule.Change{Path: strings.Repeat("p", 6<<20), Old: rule.Null, New: rule.Null}
		e := undolog.Entry{ID: bson.RawValue{Type: bson.TypeInt32, Value: []byte{byte(i), 0, 0, 0}}, Changes: []rule.Change{change}}
		if err := l.Append([]undolog.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, l)
	var got []int
	if err := entries(logsIn(t, dir), 1000, func(b []undolog.Entry) error { got = append(got, len(b)); return nil }); err != nil || !slices.Equal(got, []int{3, 3, 1}) {
		t.Errorf("batches of %d entries, %v", got, err)
	}
}

// The way back of an entry has its changes in the document that they made.
func TestWayBackOfAnEntry(t *testing.T) {
	c := conversion(t, "javaLegacy")
	doc := bson.D{{Key: "_id", Value: "a"}, {Key: "a", Value: kindstest.Value("javaLegacy")}}
	e := entryOf(t, c, doc)
	converted := marshal(t, bson.D{{Key: "_id", Value: "a"}, {Key: "a", Value: kindstest.Value("standard")}})
	for name, tt := range map[string]struct {
		doc           bson.Raw
		changes, lost int
	}{"converted": {converted, 1, 0}, "without the field": {marshal(t, bson.D{{Key: "_id", Value: "a"}}), 0, 1}} {
		back, lost, err := wayBackOf(e, tt.doc)
		if err != nil || back.ID.StringValue() != "a" || len(back.Changes) != tt.changes || len(lost) != tt.lost {
			t.Errorf("%s: got %+v, %v and %v", name, back, lost, err)
		}
	}
}

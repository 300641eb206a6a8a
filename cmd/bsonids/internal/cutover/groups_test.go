package cutover

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// A cutover that has not ended is rolled back with all its collections. One that was rolled back
// is not, nor one that is of another copy. One that was released is an error, which says when, and which old collections stand.
func TestToPutBack(t *testing.T) {
	exchanges := func(names ...string) (out []record.Exchange) {
		for _, name := range names {
			out = append(out, record.Exchange{Name: name, New: name + "_new", Kept: name + "_kept"})
		}
		return out
	}
	groups := []Group{{Names: []string{"a", "b"}, Copies: []string{"a_new", "b_new"}}, {Names: []string{"c"}, Copies: []string{"c_new"}}, {Names: []string{"d"}, Copies: []string{"d_other"}}}
	type of struct {
		state string
		names string
	}
	for _, tt := range []struct {
		cutovers  []of
		gone      string // a collection that is not there
		want, err string
	}{
		{nil, "", "", ""},
		{[]of{{record.RolledBack, "a b"}}, "", "", ""},
		{[]of{{record.Switched, "a b"}, {record.Switching, "c"}}, "", "c, a b", ""},
		{[]of{{record.Switched, "a b c"}}, "", "a b c", ""}, // more than a group of the plan
		{[]of{{record.Fencing, "a x"}}, "", "a x", ""},
		{[]of{{record.Released, "d"}}, "", "", ""},
		{[]of{{record.Switching, "a b"}}, "b_kept", "a b", ""},
		{[]of{{record.Released, "a b"}, {record.RolledBack, "a b"}}, "", "", ""},
		{[]of{{record.Released, "a b"}, {record.Switching, "c"}}, "b_kept", "",
			"a, b was released at 2026-07-01 12:00:00 UTC, which is the point of no return: the new collections stay in place; as they were at the cutover, the old collections are kept: a_kept"},
		{[]of{{record.Released, "c"}}, "c_kept", "", "c was released at 2026-07-01 12:00:00 UTC, which is the point of no return: the new collections stay in place; the old collections were dropped"},
		{[]of{{record.Releasing, "c"}}, "", "", "the old collections are kept: c_kept"},
		{[]of{{record.RolledBack, "a b"}, {record.Released, "b x"}}, "", "", "b, x was released"},
		// The plan has joined in one group what was exchanged in two.
		{[]of{{record.Switched, "a"}, {record.Switched, "b"}}, "", "b, a", ""},
		{[]of{{record.Switched, "a"}, {record.RolledBack, "b"}}, "", "a", ""},
		{[]of{{record.Released, "a"}, {record.Switched, "b"}}, "a_kept", "", "a was released"},
	} {
		s := memory.Start(t)
		db := s.Client.Database("d")
		var docs []bson.Raw
		freed := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
		for i, c := range tt.cutovers {
			at := time.Unix(int64(i), 0)
			doc, err := bson.Marshal(record.Cutover{Saved: record.Saved{ID: fmt.Sprint(i, "/cutover"), Kind: "cutover", State: c.state, Begun: at, Updated: at}, FreedAt: &freed, Collections: exchanges(strings.Fields(c.names)...)})
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, doc)
		}
		s.Put(db.Collection(record.Name), docs...)
		for _, name := range strings.Fields("a b c d x y") {
			for _, name := range []string{name, name + "_kept"} {
				if name != tt.gone {
					s.Put(db.Collection(name))
				}
			}
		}
		found, err := New(&session.Session{Client: s.Client, Messages: new(messages)}, Options{Database: "d"}).ToPutBack(t.Context(), groups)
		var got []string
		for _, c := range found {
			got = append(got, strings.Join(c.Names(), " "))
		}
		if strings.Join(got, ", ") != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%v: got %q, want %q; %v", tt.cutovers, got, tt.want, err)
		}
	}
}

// A collection that is left out parts no group from its others.
func TestGroups(t *testing.T) {
	step := func(name, into string) plan.Step { return plan.Step{Task: kinds.Task{Collection: name, Into: into}} }
	groups := [][]plan.Step{{step("a", "a2"), step("log", "log2"), step("b", "")}, {step("log3", "log4")}}
	want := []Group{{Names: []string{"a"}, Copies: []string{"a2"}}}
	if got := Groups(groups, []string{"log", "log3"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

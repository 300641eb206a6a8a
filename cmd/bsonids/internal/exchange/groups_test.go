package exchange

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

type warnings struct {
	migration.Messages
	texts []string
}

func (w *warnings) Warn(format string, args ...any) {
	w.texts = append(w.texts, fmt.Sprintf(format, args...))
}

func (w *warnings) About(string) {}

// A cutover that has not ended, or was released, is undone with all its collections. One that was rolled back
// is not, nor one that is of another copy, whose old collection was dropped, or after which there was another one.
func TestInPlace(t *testing.T) {
	exchanges := func(names ...string) (out []record.Exchange) {
		for _, name := range names {
			out = append(out, record.Exchange{Name: name, New: name + "_new", Kept: name + "_kept"})
		}
		return out
	}
	groups := []Group{{[]string{"a", "b"}, []string{"a_new", "b_new"}}, {[]string{"c"}, []string{"c_new"}}, {[]string{"d"}, []string{"d_other"}}}
	type of struct {
		state string
		names string
	}
	for _, tt := range []struct {
		cutovers   []of
		gone       string // a collection that is not there
		want, warn string
	}{
		{nil, "", "", ""},
		{[]of{{record.RolledBack, "a b"}}, "", "", ""},
		{[]of{{record.Released, "a b"}, {record.Switching, "c"}}, "", "c, a b", ""},
		{[]of{{record.Released, "a b c"}}, "", "a b c", ""}, // more than a group of the plan
		{[]of{{record.Released, "a x"}}, "", "a x", ""},
		{[]of{{record.Released, "d"}}, "", "", ""},
		{[]of{{record.Released, "a b"}, {record.Switched, "c"}}, "b_kept", "c", "the old collection of b was dropped"},
		{[]of{{record.Switching, "a b"}}, "b_kept", "a b", ""},
		{[]of{{record.RolledBack, "a b"}, {record.Released, "a b"}}, "", "a b", ""},
		{[]of{{record.Released, "a b"}, {record.RolledBack, "a b"}}, "", "", ""},
		{[]of{{record.Released, "a b"}, {record.Released, "b x"}}, "", "b x", ""},
		{[]of{{record.Released, "c y"}, {record.Released, "y"}}, "", "", "a later cutover"},
	} {
		s, w := memory.Start(t), &warnings{}
		db := s.Client.Database("d")
		var docs []bson.Raw
		for i, c := range tt.cutovers {
			at := time.Unix(int64(i), 0)
			doc, err := bson.Marshal(record.Cutover{Saved: record.Saved{ID: fmt.Sprint(i, "/cutover"), Kind: "cutover", State: c.state, Begun: at, Updated: at}, Collections: exchanges(strings.Fields(c.names)...)})
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
		found, err := New(&migration.Session{Client: s.Client, Messages: w}, Options{Database: "d"}).InPlace(t.Context(), groups)
		var got []string
		for _, g := range found {
			got = append(got, strings.Join(g.Names, " "))
		}
		if err != nil || strings.Join(got, ", ") != tt.want || (len(w.texts) > 0) != (tt.warn != "") || !strings.Contains(strings.Join(w.texts, ""), tt.warn) {
			t.Errorf("%v: got %q, want %q; %q, %v", tt.cutovers, got, tt.want, w.texts, err)
		}
	}
}

// A collection that is left out parts no group from its others.
func TestGroups(t *testing.T) {
	step := func(name, into string) plan.Step { return plan.Step{Task: kinds.Task{Collection: name, Into: into}} }
	groups := [][]plan.Step{{step("a", "a2"), step("log", "log2"), step("b", "")}, {step("log3", "log4")}}
	want := []Group{{[]string{"a"}, []string{"a2"}}}
	if got := Groups(groups, []string{"log", "log3"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

package cutover

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A cutover puts the copies in the places of their collections, which take no writes until the release. A rehearsal changes nothing. The
// release is the point of no return, and can be given again.
func TestCutOver(t *testing.T) {
	for _, streams := range []bool{false, true} {
		c := newCopied(t, streams, 20, "a", "b")
		c.o.Write = false
		if r, err := c.cutOver(); err != nil || !r.Begun || r.Written || r.Denied != nil || len(r.Collections) != 2 || r.Collections[0].Compared.Documents != 20 || c.state() != "" || len(c.told) > 0 {
			t.Fatalf("streams %v: %+v, %v, %q", streams, r, err, c.told)
		}
		if _, err := c.release(); !isUsage(err) {
			t.Error(err)
		}
		c.o.Write = true
		r, err := c.cutOver()
		if err != nil || !r.Begun || r.State != record.Switched || c.state() != record.Switched || r.Conflicts() != 0 || (r.Stream != nil) != streams {
			t.Fatalf("streams %v: %+v, %v, %q", streams, r, err, c.told)
		}
		for _, name := range []string{"a", "b"} {
			c.docs(name, "standard", numbers(20)...)
			c.docs(record.KeptName(name), "generic", numbers(20)...)
			if !c.fenced(name) || c.there(name+"_new") {
				t.Errorf("%s is not fenced", name)
			}
		}
		if r, err := c.cutOver(); err != nil || r.State != record.Switched { // nothing is left to do
			t.Errorf("%+v, %v", r, err)
		}
		c.o.Write = false
		if r, err := c.release(); err != nil || c.state() != record.Switched || r.Again {
			t.Errorf("%+v, %v", r, err)
		}
		c.o.Write = true
		for _, again := range []bool{false, true} {
			if r, err := c.release(); err != nil || c.state() != record.Released || r.Again != again || len(r.Left) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
		}
		for _, name := range []string{"a", "b"} {
			if c.fenced(name) {
				t.Errorf("%s is fenced", name)
			}
		}
		if _, err := c.putBack(); !isUsage(err) || !strings.Contains(err.Error(), "the point of no return") || !strings.Contains(err.Error(), "a_before_cutover, b_before_cutover") {
			t.Error(err)
		}
		if _, err := c.cutOver(); !isUsage(err) {
			t.Error(err)
		}
	}
}

// The old collections go back by renaming, with their settings, before the release.
func TestPutBack(t *testing.T) {
	for _, streams := range []bool{false, true} {
		c := newCopied(t, streams, 20, "a", "b")
		had := bson.D{{Key: "validator", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$exists", Value: true}}}}}, {Key: "validationLevel", Value: "strict"}, {Key: "validationAction", Value: "error"}}
		c.s.Describe(c.db.Collection("a"), "", had)
		c.o.RollBack = true
		if _, err := c.cutOver(); !isUsage(err) || !strings.Contains(err.Error(), "no cutover of a, b is under way") {
			t.Error(err)
		}
		c.o.RollBack = false
		if _, err := c.cutOver(); err != nil {
			t.Fatal(err)
		}
		if !c.says("a has the validator") {
			t.Error(c.told)
		}
		c.o.Write = false
		if r, err := c.putBack(); err != nil || !r.RollBack || !r.Begun || c.state() != record.Switched {
			t.Errorf("%+v, %v", r, err)
		}
		c.o.Write, c.o.RollBack = true, true
		if r, err := c.cutOver(); err != nil || !r.RollBack || c.state() != record.RolledBack {
			t.Errorf("%+v, %v", r, err)
		}
		for _, name := range []string{"a", "b"} {
			c.docs(name, "generic", numbers(20)...)
			c.docs(name+"_new", "standard", numbers(20)...)
			if c.there(record.KeptName(name)) {
				t.Errorf("there is still the old collection of %s", name)
			}
		}
		if !c.fenced("a") || c.fenced("b") { // a has the validator that it had
			t.Error("the settings are not restored")
		}
		c.o.RollBack = false
		if r, err := c.cutOver(); err != nil || r.State != record.Switched {
			t.Errorf("again: %s, %v", r.State, err)
		}
	}
}

// What is written to an old collection until the fence is set is in the new one behind it, and what a program writes to a new one in
// spite of the fence is counted, kept in a file when the old ones go back, and forbids the release and the way back, unless it is
// accepted.
func TestWrittenMeanwhile(t *testing.T) {
	for _, streams := range []bool{false, true} {
		c := newCopied(t, streams, 20, "a")
		var written bool
		c.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if of, _ := command.Lookup(name).StringValueOK(); name == "collMod" && of == "a" && !written { // the fence
				written = true
				a := c.db.Collection("a")
				if _, err := a.InsertOne(t.Context(), document(t, 50, "generic")); err != nil {
					t.Error(err)
				}
				if _, err := a.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: document(t, 3, "generic").Lookup("_id")}}); err != nil {
					t.Error(err)
				}
				if _, err := a.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: document(t, 4, "generic").Lookup("_id")}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(4)}}}}); err != nil {
					t.Error(err)
				}
			}
			return f
		}
		if r, err := c.cutOver(); err != nil || r.State != record.Switched || !written {
			t.Fatalf("streams %v: %+v, %v", streams, r, err)
		}
		c.s.Before = nil
		now := append(slices.DeleteFunc(numbers(20), func(n int) bool { return n == 3 }), 50)
		c.docs("a", "standard", now...)
		c.docs("a_before_cutover", "generic", now...)

		c.s.Put(c.db.Collection("a"), append(c.s.Documents(c.db.Collection("a"))[1:], document(t, 60, "standard"))...) // past the fence
		c.o.Write = false
		if _, err := c.putBack(); !isUsage(err) || !strings.Contains(err.Error(), "--allow-changed puts the old collections back without them") {
			t.Error(err)
		}
		c.o.Write = true
		if _, err := c.putBack(); err == nil || c.state() == record.RolledBack {
			t.Errorf("streams %v: %v, %s", streams, err, c.state())
		}
		var aside []string
		c.o.Accept, c.o.Aside = true, func(name string, doc bson.Raw) error {
			aside = append(aside, fmt.Sprint(name, " ", doc.Lookup("n").Int32()))
			return nil
		}
		if _, err := c.putBack(); err != nil || c.state() != record.RolledBack || !slices.Contains(aside, "a 60") {
			t.Errorf("streams %v: %v, %s, %q", streams, err, c.state(), aside)
		}
		c.docs("a", "generic", now[1:]...) // the deletion was applied
	}
}

// Whichever command the server refuses or loses, no document is lost, and what the record says is so: the same command goes on, or the
// old collections are in place.
func TestCutOverAnyCommandFails(t *testing.T) {
	for _, streams := range []bool{false, true} {
		n := 0
		for at := 1; ; at++ {
			c := newCopied(t, streams, 3, "a")
			sent, last := 0, ""
			c.s.Before = func(name string, _ bson.Raw) memory.Fault {
				if name != "endSessions" && name != "killCursors" {
					if sent++; sent == at {
						last = name
						return memory.Fault{Code: 2}
					}
				}
				return memory.Fault{}
			}
			_, err := c.cutOver()
			c.s.Before = nil
			if last == "" {
				break
			}
			n++
			what := fmt.Sprintf("streams %v, %s, command %d", streams, last, at)
			if err == nil && c.state() != record.Switched {
				t.Errorf("%s: no error, and %q", what, c.state())
			}
			if c.state() == record.RolledBack || c.state() == "" {
				c.docs("a", "generic", 0, 1, 2)
				if c.fenced("a") || c.there("a_before_cutover") {
					t.Errorf("%s: fenced", what)
				}
			}
			if at%2 == 0 {
				if r, err := c.cutOver(); err != nil || r.State != record.Switched {
					t.Errorf("%s: %v", what, err)
				}
				c.docs("a", "standard", 0, 1, 2)
				c.docs("a_before_cutover", "generic", 0, 1, 2)
			} else {
				if _, err := c.putBack(); err != nil {
					t.Errorf("%s: back: %v", what, err)
				}
				c.docs("a", "generic", 0, 1, 2)
				c.docs("a_new", "standard", 0, 1, 2)
			}
			if t.Failed() {
				return
			}
		}
		if n < 40 {
			t.Errorf("%d commands", n)
		}
	}
}

// The release fails with any command that the server refuses, and the same command releases what is left.
func TestReleaseAnyCommandFails(t *testing.T) {
	for at := 1; ; at++ {
		c := newCopied(t, false, 3, "a")
		if _, err := c.cutOver(); err != nil {
			t.Fatal(err)
		}
		sent, last := 0, ""
		c.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
			if name != "endSessions" {
				if sent++; sent == at {
					last, f.Code = name, 2
				}
			}
			return f
		}
		_, err := c.release()
		c.s.Before = nil
		if last == "" {
			if at < 15 {
				t.Errorf("%d commands", at)
			}
			return
		}
		if err == nil && last != "connectionStatus" || err != nil && c.state() != record.Switched && c.state() != record.Releasing && c.state() != record.Released {
			t.Errorf("%s, command %d: %s, %v", last, at, c.state(), err)
		}
		if _, err := c.release(); err != nil || c.state() != record.Released || c.fenced("a") {
			t.Errorf("after %s, command %d: %s, %v", last, at, c.state(), err)
		}
		c.docs("a", "standard", 0, 1, 2)
	}
}

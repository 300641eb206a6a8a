package cutover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// served returns a server whose database has an empty collection a.
func served(t *testing.T) (*memory.Server, *Server) {
	s := memory.Start(t)
	db := s.Client.Database("d")
	s.Put(db.Collection("a"))
	return s, &Server{DB: db, Timeout: time.Minute, Check: func(context.Context) error { return nil }}
}

// What a cutover changes is done by a server that refuses what MongoDB refuses.
func TestServerChanges(t *testing.T) {
	_, s := served(t)
	if err := s.Set(t.Context(), "a", Fence()); err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	all, err := s.Look(t.Context())
	if is, ok := all["b"]; err != nil || len(all) != 1 || !ok || !is.Settings.Equal(Fence()) {
		t.Errorf("%+v, %v", all, err)
	}
	if err := s.Rename(t.Context(), "a", "c"); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	if err := s.Rename(t.Context(), "b", "b"); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
}

// Another operation holds the collection for some time. A server that ends a command at its limit is asked for a second
// at a time, with pauses. A router is asked once, and then the collections are looked at: it goes on.
func TestServerHeld(t *testing.T) {
	for name, tt := range map[string]struct {
		held   int  // how many commands the server ends at their limit
		halves bool // it does so by itself
		router bool
		late   int // the look before which a router carries out what it has ended; 0 for never

		asked  int
		limit  time.Duration // of each command
		slept  time.Duration // not more
		errors bool
	}{
		"nothing":                  {0, true, false, 0, 1, time.Second, 0, false},
		"for a while":              {12, true, false, 0, 13, time.Second, 12 * time.Second, false},
		"for long":                 {1000, true, false, 0, 30, time.Second, 29 * time.Second, true},
		"on a router, for a while": {1, true, true, 8, 1, time.Minute, 3 * time.Second, false},
		"on a router, for long":    {1, true, true, 0, 1, time.Minute, 61 * time.Second, true},
		"limits are not enforced":  {0, false, false, 0, 1, time.Minute, 0, false},
	} {
		for _, change := range []string{"collMod", "renameCollection"} {
			m, s := served(t)
			s.Halves, s.Router = tt.halves, tt.router
			var slept time.Duration
			s.sleep = func(_ context.Context, d time.Duration) error { slept += d; return nil }
			asked, looked := 0, 0
			m.Before = func(command string, doc bson.Raw) (f memory.Fault) {
				switch command {
				case change:
					limit, ok := doc.Lookup("maxTimeMS").AsInt64OK()
					if !ok {
						break // the router goes on
					}
					asked++
					if d := time.Duration(limit) * time.Millisecond; d > tt.limit || d < tt.limit/2 {
						t.Errorf("%s: the limit is %s", name, d)
					}
					if asked <= tt.held {
						f.Code = 50 // MaxTimeMSExpired
					}
				case "listCollections":
					if looked++; looked != tt.late {
						break
					}
					var err error
					if db := m.Client.Database("d"); change == "collMod" {
						err = db.RunCommand(t.Context(), bson.D{{Key: "collMod", Value: "a"}, {Key: "validator", Value: bson.Raw(Fence().Validator)},
							{Key: "validationLevel", Value: Fence().Level}, {Key: "validationAction", Value: Fence().Action}}).Err()
					} else {
						m.Rename(db.Collection("a"), "b")
					}
					if err != nil {
						t.Error(err)
					}
				}
				return f
			}
			var err error
			if change == "collMod" {
				err = s.Set(t.Context(), "a", Fence())
			} else {
				err = s.Rename(t.Context(), "a", "b")
			}
			var e *failure.Error
			if (err != nil) != tt.errors || err != nil && (!errors.As(err, &e) || e.Kind != failure.Held || !final(err) || !failure.Transient(err) ||
				!strings.Contains(e.Text, "a transaction or another operation holds d.a") || strings.Contains(e.Text, "reached")) {
				t.Errorf("%s, %s: %v", name, change, err)
			}
			if asked != tt.asked || slept > tt.slept {
				t.Errorf("%s, %s: asked %d times, slept for %s", name, change, asked, slept)
			}
		}
	}
}

// Settings that a server may still change, because it went on with a command that it had ended, are restored also if
// they are as they were.
func TestRestoreInDoubt(t *testing.T) {
	for _, router := range []bool{false, true} {
		m, s := served(t)
		s.Router = router
		asked := 0
		m.Before = func(command string, _ bson.Raw) (f memory.Fault) {
			if command == "collMod" {
				asked++
			}
			return f
		}
		all, err := s.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := &Cutover{Cutover: &record.Cutover{}, DB: s}
		if ok, err := c.restore(t.Context(), "a", all["a"].Settings); !ok || err != nil || (asked > 0) != router {
			t.Errorf("router %v: %v, %v, asked %d times", router, ok, err, asked)
		}
	}
}

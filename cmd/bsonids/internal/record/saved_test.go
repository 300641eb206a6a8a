package record

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A change is made once, whichever command fails, before or after the server carried it out, if it is tried again.
// Whoever read the document before the change is refused.
func TestSaved(t *testing.T) {
	for at := 1; ; at++ {
		failed := 0
		for _, lost := range []bool{false, true} {
			s := memory.Start(t)
			db := s.Client.Database("d")
			n := 0
			s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
				if name == "hello" && n == 0 { // of the connection
					return f
				}
				if n++; n == at {
					if failed++; lost {
						f.Lost = true
					} else {
						f.Code = 91 // ShutdownInProgress
					}
				}
				return f
			}
			c := NewCutover([]Exchange{{Name: "a"}}, "")
			save := func() {
				t.Helper()
				for i := 0; c.Save(t.Context(), db) != nil; i++ {
					if i > 0 {
						t.Fatal("a second error")
					}
				}
			}
			read := func() *Cutover {
				t.Helper()
				all, err := Cutovers(t.Context(), db)
				if err != nil || len(all) != 1 {
					t.Fatal(all, err)
				}
				return all[0]
			}
			save()
			n = 100
			before := read()
			if before.State != Comparing || before.Token != c.Token || !before.Begun.Equal(c.Begun) {
				t.Errorf("%+v, want %+v", before, c)
			}
			c.State, n = Fencing, 0
			save()
			n = 100
			if now := read(); now.State != Fencing || now.Token != c.Token || now.Token == before.Token || !now.Begun.Equal(c.Begun) {
				t.Errorf("%+v, want %+v", now, c)
			}
			before.State = RollingBack
			again := NewCutover(nil, "")
			again.ID = c.ID
			for _, other := range []*Cutover{before, again} {
				if err := other.Save(t.Context(), db); !errors.Is(err, ErrTakenOver) || read().State != Fencing {
					t.Errorf("%v, %+v", err, read())
				}
			}
		}
		if failed == 0 {
			return
		}
	}
}

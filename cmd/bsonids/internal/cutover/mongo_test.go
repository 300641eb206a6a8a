package cutover

import (
	"context"
	"errors"
	"testing"
	"time"

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

package convert

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A presence is checked again when checkEvery has gone by since the last check, and not before.
func TestPresenceIsCheckedSometimes(t *testing.T) {
	ctx := context.Background()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	p := &presence{now: func() time.Time { return now }}
	for _, tt := range []struct {
		after time.Duration
		want  time.Duration // of the last check
	}{{0, 0}, {checkEvery - 1, 0}, {checkEvery, checkEvery}, {2*checkEvery - 1, checkEvery}, {3 * checkEvery, 3 * checkEvery}} {
		now = start.Add(tt.after)
		if err := p.sometimes(ctx); err != nil || !p.checked.Equal(start.Add(tt.want)) {
			t.Errorf("after %v: checked at %v, error %v", tt.after, p.checked.Sub(start), err)
		}
	}
	var none *presence
	if err := errors.Join(none.sometimes(ctx), none.check(ctx), none.after(ctx, nil)); err != nil {
		t.Errorf("no presence: %v", err)
	}
}

// The error of work is returned, unless the collection is gone or there is none, in which case that of the check is.
func TestErrorsAfterWork(t *testing.T) {
	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Disconnect(ctx); err != nil { // its operations fail at once
		t.Fatal(err)
	}
	p := &presence{patience: new(patience.Patience), now: time.Now}
	p.add(client.Database("d").Collection("c"), nil)
	for name, check := range map[string]error{"check": p.check(ctx), "sometimes": p.sometimes(ctx), "after": p.after(ctx, nil)} {
		if !errors.Is(check, mongo.ErrClientDisconnected) {
			t.Errorf("%s: got %v", name, check)
		}
	}
	if !p.checked.IsZero() {
		t.Error("a check that failed counts")
	}
	if _, err := watch(ctx, p.patience, client.Database("d").Collection("c")); !errors.Is(err, mongo.ErrClientDisconnected) {
		t.Errorf("the error of the first look is lost: %v", err)
	}
	lost := fmt.Errorf("work: %w", &LostError{Namespace: "d.c", What: "was dropped or renamed"})
	for _, failed := range []error{errTest, lost} {
		if err := p.after(ctx, failed); err != failed {
			t.Errorf("got %v, want %v", err, failed)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := p.after(ended, nil); err != nil {
		t.Errorf("after the context has ended: %v", err)
	}
}

// A collection is the one with which the run began as long as its UUID has its name. After work that has failed, a collection that is
// gone is why, unless the server was lost.
func TestPresence(t *testing.T) {
	ctx := context.Background()
	for name, lose := range map[string]func(s *memory.Server, coll *mongo.Collection){
		"there": func(*memory.Server, *mongo.Collection) {}, "was dropped or renamed": (*memory.Server).Drop,
		"was renamed to other":      func(s *memory.Server, coll *mongo.Collection) { s.Rename(coll, "other") },
		"is another collection now": func(s *memory.Server, coll *mongo.Collection) { s.Drop(coll); s.Put(coll) },
	} {
		s := memory.Start(t)
		db := s.Client.Database("d")
		s.Put(db.Collection("c"))
		s.Put(db.Collection("x"))
		p, err := watch(ctx, nil, db.Collection("x"), db.Collection("c"))
		if err != nil {
			t.Fatal(err)
		}
		lose(s, db.Collection("c"))
		var lost *LostError
		gone := name != "there"
		for _, failed := range []error{nil, errTest} {
			err := p.after(ctx, failed)
			if errors.As(err, &lost) != gone || gone && (lost.Namespace != "d.c" || !strings.HasPrefix(lost.What, name)) || !gone && err != failed {
				t.Errorf("%s, after %v: %v", name, failed, err)
			}
		}
		transient := mongo.CommandError{Code: 91}
		if err := p.after(ctx, transient); !errors.As(err, new(mongo.CommandError)) || errors.As(err, &lost) {
			t.Errorf("%s, after the server was lost: %v", name, err)
		}
		if !gone || name == "was dropped or renamed" {
			continue
		}
		lists := 0
		s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
			if name == "listCollections" {
				if lists++; lists == 3 { // the one that looks for the UUID
					f.Code = 13
				}
			}
			return f
		}
		if err := p.check(ctx); err == nil || errors.As(err, &lost) || lists != 3 {
			t.Errorf("%s, not allowed to look for it: %v", name, err)
		}
	}
}

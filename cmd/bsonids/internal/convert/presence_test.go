package convert

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// A presence is checked again when checkpointEvery has gone by since the last check, and not before.
func TestPresenceIsCheckedSometimes(t *testing.T) {
	ctx := context.Background()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	p := &presence{now: func() time.Time { return now }}
	for _, tt := range []struct {
		after time.Duration
		want  time.Duration // of the last check
	}{{0, 0}, {checkpointEvery - 1, 0}, {checkpointEvery, checkpointEvery}, {2*checkpointEvery - 1, checkpointEvery}, {3 * checkpointEvery, 3 * checkpointEvery}} {
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
	for _, failed := range []error{errUndoTest, lost} {
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

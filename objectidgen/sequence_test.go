package objectidgen

import (
	"errors"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestSequence(t *testing.T) {
	ids := []bson.ObjectID{Max(), Min(), Max(), {1}}
	src := NewSequence(ids...)
	ids[0] = bson.ObjectID{9}
	for i, want := range []bson.ObjectID{Max(), Min(), Max(), {1}} {
		if got, err := src.NewID(); err != nil || got != any(want) {
			t.Errorf("id %d: %v, %v, want %v", i, got, err, want)
		}
	}
	for range 3 {
		if got, err := src.NewID(); !errors.Is(err, ErrExhausted) || got != nil {
			t.Errorf("after the last: %v, %v", got, err)
		}
	}
}

func TestSequenceEmpty(t *testing.T) {
	for name, src := range map[string]*Sequence{"none": NewSequence(), "zero value": new(Sequence)} {
		if got, err := src.NewID(); !errors.Is(err, ErrExhausted) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestSequenceConcurrent(t *testing.T) {
	ids := make([]bson.ObjectID, 1000)
	for i := range ids {
		ids[i] = bson.ObjectID{10: byte(i >> 8), 11: byte(i)}
	}
	src := NewSequence(ids...)
	var mu sync.Mutex
	seen := map[bson.ObjectID]int{}
	exhausted := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				id, err := src.NewID()
				mu.Lock()
				if err != nil {
					exhausted++
				} else {
					seen[id.(bson.ObjectID)]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if seen[id] != 1 {
			t.Errorf("%v came %d times", id, seen[id])
		}
	}
	if exhausted != 200 {
		t.Errorf("%d calls got an error, want 200", exhausted)
	}
}

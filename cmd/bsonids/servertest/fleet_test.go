package servertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidrep"
)

// Services that match both representations find every document before, during and after a
// conversion in place, while services of both representations write.
func TestFleet(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("orders")
	old, err1 := mixedrep.Wrap(coll, uuidrep.JavaLegacy, uuidrep.Standard)
	deployed, err2 := mixedrep.Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy)
	check(t, errors.Join(err1, err2))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	// The customers of the orders that are known to be stored: the _id of an order is the position of its customer.
	var mu sync.Mutex
	var customers []uuid.UUID
	newest := uuidrep.JavaLegacy // until the last service of the old representation is replaced
	write := func(r uuidrep.Representation) error {
		mu.Lock()
		defer mu.Unlock()
		u := uuid.New()
		_, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: int32(len(customers))}, {Key: "customer", Value: in(u, r)}})
		if err == nil {
			customers = append(customers, u)
		}
		return err
	}
	read := func(service *mixedrep.Collection) error {
		mu.Lock()
		id := rand.IntN(len(customers))
		customer := customers[id]
		mu.Unlock()
		var got struct {
			ID       int `bson:"_id"`
			Customer uuid.UUID
		}
		err := service.FindOne(ctx, bson.D{{Key: "customer", Value: customer}}).Decode(&got)
		if err != nil || got.ID != id || got.Customer != customer {
			return fmt.Errorf("order %d of %v was found as %v: %w", id, customer, got, err)
		}
		return nil
	}
	for range 60 {
		check(t, write(uuidrep.JavaLegacy))
	}

	var reads, writes atomic.Int64
	var wg sync.WaitGroup
	service := func(count *atomic.Int64, most int64, do func() error) {
		wg.Go(func() {
			for ctx.Err() == nil && count.Load() < most {
				if err := do(); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				count.Add(1)
			}
		})
	}
	service(&reads, 2000, func() error { return read(old) })
	service(&reads, 2000, func() error { return read(deployed) })
	var turn sync.Mutex
	service(&writes, 150, func() error { // bounded, because a conversion reads as long as documents arrive
		turn.Lock()
		defer turn.Unlock()
		if writes.Load()%2 == 0 {
			return write(newest)
		}
		return write(uuidrep.Standard)
	})

	dir := prepared(t, s)
	if r := command(t, s, applying(dir)...); r.code != failure.ExitOK && r.code != failure.ExitIncomplete { // services write old values all the time
		t.Fatal(r.stderr)
	}
	turn.Lock()
	newest = uuidrep.Standard
	turn.Unlock()
	// The same command converts what the old services wrote during the conversion.
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	stop()
	wg.Wait()
	t.Logf("%d reads, %d writes, %d documents", reads.Load(), writes.Load(), len(customers))
	if reads.Load() < 20 || writes.Load() < 20 {
		t.Errorf("too little happened during the conversion: %d reads, %d writes", reads.Load(), writes.Load())
	}
	if n := len(all(t, coll)); n < len(customers) {
		t.Errorf("%d documents are stored, want %d", n, len(customers))
	}
	wantNew(t, coll, "customer")
}

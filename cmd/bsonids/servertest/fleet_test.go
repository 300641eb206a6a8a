package servertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidrep"
)

// fleet is the services that use one collection, and the orders that they know to be stored.
type fleet struct {
	t    *testing.T
	coll *mongo.Collection
	id   atomic.Int32

	mu     sync.Mutex
	stored []order
}

type order struct {
	id       int32
	customer uuid.UUID
}

// write stores an order as a service that uses the representation r does.
func (f *fleet) write(ctx context.Context, r uuidrep.Representation) error {
	o := order{f.id.Add(1), uuid.New()}
	_, err := f.coll.InsertOne(ctx, bson.D{{Key: "_id", Value: o.id}, {Key: "customer", Value: in(o.customer, r)}})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.stored = append(f.stored, o)
	f.mu.Unlock()
	return nil
}

// read finds an order that is known to be stored by its customer.
func (f *fleet) read(ctx context.Context, service *mixedrep.Collection) error {
	f.mu.Lock()
	o := f.stored[rand.IntN(len(f.stored))]
	f.mu.Unlock()
	var got struct {
		ID       int32 `bson:"_id"`
		Customer uuid.UUID
	}
	if err := service.FindOne(ctx, bson.D{{Key: "customer", Value: o.customer}}).Decode(&got); err != nil {
		return fmt.Errorf("order %d: %w", o.id, err)
	}
	if got.ID != o.id || got.Customer != o.customer {
		return fmt.Errorf("order %d of %v was found as %v", o.id, o.customer, got)
	}
	return nil
}

// Services that match both representations find every document before, during and after a
// conversion in place, while services of both representations write.
func TestFleet(t *testing.T) {
	s, db := started(t)
	f := &fleet{t: t, coll: db.Collection("orders")}
	old, err := mixedrep.Wrap(f.coll, uuidrep.JavaLegacy, uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	deployed, err := mixedrep.Wrap(f.coll, uuidrep.Standard, uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		if err := f.write(t.Context(), uuidrep.JavaLegacy); err != nil {
			t.Fatal(err)
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
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
	service(&reads, 2000, func() error { return f.read(ctx, old) })
	service(&reads, 2000, func() error { return f.read(ctx, deployed) })
	legacy := true // until the last service of the old representation is replaced
	var turn sync.Mutex
	service(&writes, 150, func() error { // bounded, because a conversion reads as long as documents arrive
		turn.Lock()
		defer turn.Unlock()
		if legacy && f.id.Load()%2 == 0 {
			return f.write(ctx, uuidrep.JavaLegacy)
		}
		return f.write(ctx, uuidrep.Standard)
	})

	apply := func(changes ...func(*plan.Plan)) {
		t.Helper()
		command(t, s, append([]string{"apply", prepared(t, s, "standard", changes...), "--write"}, gentle...)...).want(t, failure.ExitOK)
	}
	apply()
	turn.Lock()
	legacy = false
	turn.Unlock()
	// The old services wrote these during the conversion: too few values to tell their order.
	for _, doc := range all(t, f.coll) {
		if subtype, _ := doc.Lookup("customer").Binary(); subtype == bson.TypeBinaryUUIDOld {
			apply(convertFields("javaLegacy", "", "customer"), trusted("customer"))
			break
		}
	}
	stop()
	wg.Wait()
	t.Logf("%d reads, %d writes, %d documents", reads.Load(), writes.Load(), f.id.Load())
	if reads.Load() < 20 || writes.Load() < 20 {
		t.Errorf("too little happened during the conversion: %d reads, %d writes", reads.Load(), writes.Load())
	}

	n, err := f.coll.CountDocuments(t.Context(), bson.D{{Key: "customer", Value: bson.D{{Key: "$type", Value: "binData"}}}})
	if err != nil || int(n) < len(f.stored) {
		t.Errorf("%d documents are stored, want %d, %v", n, len(f.stored), err)
	}
	for id, doc := range all(t, f.coll) {
		if subtype, _ := doc.Lookup("customer").Binary(); subtype != bson.TypeBinaryUUID {
			t.Errorf("document %s has subtype %d after the conversion", id, subtype)
		}
	}
}

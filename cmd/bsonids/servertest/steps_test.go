package servertest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidrep"
)

// service stores and finds documents at one step of the guide "Changing the representation while
// services run".
type service interface {
	InsertOne(context.Context, any, ...options.Lister[options.InsertOneOptions]) (*mongo.InsertOneResult, error)
	FindOne(context.Context, any, ...options.Lister[options.FindOneOptions]) *mongo.SingleResult
}

func serviceAt(t *testing.T, s *mongotest.Server, step int) service {
	t.Helper()
	plain := func(r uuidrep.Representation, opts ...clientopt.Option) *mongo.Collection {
		client, err := clientopt.Connect(s.With("uuidRepresentation="+r.String()), opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
		return client.Database(s.Database()).Collection("orders")
	}
	mixed := func(write, also uuidrep.Representation) service {
		c, err := mixedrep.Wrap(plain(write), write, also)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	switch step {
	case 0:
		return plain(uuidrep.JavaLegacy)
	case 1:
		return plain(uuidrep.JavaLegacy, clientopt.WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.AlsoDecode(uuidrep.Standard) }))
	case 2:
		return mixed(uuidrep.JavaLegacy, uuidrep.Standard)
	case 3, 4:
		return mixed(uuidrep.Standard, uuidrep.JavaLegacy)
	default:
		return plain(uuidrep.Standard)
	}
}

// At every step, and while services are at two consecutive steps, each service finds what the other
// one stores and all that was stored before.
func TestSteps(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	ctx := t.Context()
	var customers []uuid.UUID
	store := func(c service) {
		t.Helper()
		u := uuid.New()
		if _, err := c.InsertOne(ctx, bson.D{{Key: "customer", Value: u}}); err != nil {
			t.Fatal(err)
		}
		customers = append(customers, u)
	}
	misses := func(c service) (err error) {
		for _, u := range customers {
			var got struct{ Customer uuid.UUID }
			if e := c.FindOne(ctx, bson.D{{Key: "customer", Value: u}}).Decode(&got); e != nil || got.Customer != u {
				err = fmt.Errorf("%v: found %v, %w", u, got.Customer, e)
			}
		}
		return err
	}
	services := make([]service, 6)
	for step := range services {
		services[step] = serviceAt(t, s, step)
	}
	together := func(a, b int) {
		t.Helper()
		for _, step := range []int{a, b, a} {
			for range 5 {
				store(services[step])
			}
			for _, reader := range []int{a, b} {
				if err := misses(services[reader]); err != nil {
					t.Fatalf("services at the steps %d and %d: that at %d: %v", a, b, reader, err)
				}
			}
		}
	}
	together(0, 1)
	together(1, 2)
	together(2, 3)
	if misses(services[0]) == nil {
		t.Error("a service that was never deployed finds what step 3 writes: the test cannot fail")
	}
	together(3, 2) // back
	together(2, 3)
	dir := prepared(t, s, "standard", convertFields("javaLegacy", "", "customer"))
	apply := append([]string{"apply", dir, "--write"}, gentle...)
	command(t, s, apply...).want(t, failure.ExitOK)
	together(3, 4)
	command(t, s, "undo", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
	together(3, 4)
	command(t, s, apply...).want(t, failure.ExitOK)
	for _, doc := range all(t, db.Collection("orders")) {
		if subtype, _ := doc.Lookup("customer").Binary(); subtype != bson.TypeBinaryUUID {
			t.Fatalf("%v has subtype %d after the conversion", doc, subtype)
		}
	}
	together(4, 5)
	together(5, 4) // back
}

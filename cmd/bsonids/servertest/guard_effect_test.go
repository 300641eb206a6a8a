package servertest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// On a server that orders binary values as MongoDB does, the validator refuses old values and
// nothing else, before, during and after the conversion.
func TestGuardEffect(t *testing.T) {
	s := mongotest.Start(t)
	s.Require(t, mongotest.CollMod, mongotest.BinaryOrder)
	g := &guarded{TB: t, server: s, s: s, db: connect(t, s)}
	g.create(options.CreateCollection().SetValidator(own))
	dir := g.plan("strict")
	write := func(refused bool, what string, f func(context.Context) error) {
		t.Helper()
		err := f(t.Context())
		var se mongo.ServerError
		if failed := errors.As(err, &se) && se.HasErrorCode(121); failed != refused || err != nil && !failed {
			t.Errorf("%s: %v, want refused %v", what, err, refused)
		}
	}
	add := func(v any) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := g.coll.InsertOne(ctx, append(bson.D{{Key: "n", Value: int32(1)}}, v.(bson.D)...))
			return err
		}
	}
	set := func(id int32, key string, v any) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := g.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: key, Value: v}}}})
			return err
		}
	}
	old, is := in(v4(1), uuidrep.JavaLegacy), in(v4(1), uuidrep.Standard)
	short, long := bson.Binary{Subtype: 3, Data: make([]byte, 15)}, bson.Binary{Subtype: 3, Data: make([]byte, 17)}
	d := func(key string, v any) bson.D { return bson.D{{Key: key, Value: v}} }
	inserts := func() {
		t.Helper()
		write(true, "old", add(d("customer", old)))
		write(true, "old in an array", add(d("customer", bson.A{is, old})))
		write(true, "old in a document", add(d("items", d("sku", old))))
		write(true, "old in an array of documents", add(d("items", bson.A{d("sku", is), d("sku", old)})))
		write(true, "old in an array in an array of documents", add(d("items", bson.A{d("sku", bson.A{is, old})})))
		write(false, "new", add(bson.D{{Key: "customer", Value: is}, {Key: "items", Value: bson.A{d("sku", is)}}}))
		write(false, "other lengths", add(d("customer", bson.A{short, long, is})))
		write(false, "other lengths in documents", add(d("items", bson.A{d("sku", short), d("sku", long)})))
		write(false, "another field", add(d("other", old)))
		write(true, "the own validator", func(ctx context.Context) error { _, err := g.coll.InsertOne(ctx, d("n", "text")); return err })
	}
	// At level moderate, before the first batch.
	var moderate sync.Once
	g.s = startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("update").StringValueOK(); name == "c" && r.documents > 1 {
			moderate.Do(func() {
				g.wantLevel("moderate", 1)
				inserts()
				write(false, "an update of a document with an old value", set(1, "touched", int32(1)))
			})
		}
		return pass()
	})
	g.apply(dir, "--write").want(t, failure.ExitOK)
	g.s = s
	g.wantLevel("strict", 1)
	write(true, "an old value into a converted document", set(1, "customer", old))
	inserts()
	write(true, "an old value into a converted document, strict", set(2, "items.0.sku", old))
	write(false, "a new value, strict", func(ctx context.Context) error { // in a document that undo does not restore
		_, err := g.coll.UpdateOne(ctx, d("customer", is), d("$set", d("customer", bson.A{is, is})))
		return err
	})
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	g.wantLevel("strict", 0)
	write(false, "old, without the guard", add(d("customer", old)))
}

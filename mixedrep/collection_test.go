package mixedrep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// unreachable returns a collection whose operations end without a server.
func unreachable(t *testing.T) (*mongo.Collection, context.Context) {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return client.Database("db").Collection("c"), ctx
}

// Every method refuses what it cannot match, before it asks a server, and shows the caller's value.
func TestRefusedBeforeSending(t *testing.T) {
	coll, ctx := unreachable(t)
	c, err := Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	refused := bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: u1}}}}
	plain := bson.D{{Key: "a", Value: u1}}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "b", Value: 1}}}}
	pull := bson.D{{Key: "$pull", Value: bson.D{{Key: "l", Value: u1}}}}
	for name, f := range map[string]func() error{
		"Find":              func() error { _, err := c.Find(ctx, refused); return err },
		"FindOne":           func() error { return c.FindOne(ctx, refused).Err() },
		"FindOneAndDelete":  func() error { return c.FindOneAndDelete(ctx, refused).Err() },
		"FindOneAndReplace": func() error { return c.FindOneAndReplace(ctx, refused, bson.D{}).Err() },
		"FindOneAndUpdate":  func() error { return c.FindOneAndUpdate(ctx, refused, set).Err() },
		"CountDocuments":    func() error { _, err := c.CountDocuments(ctx, refused); return err },
		"Distinct":          func() error { return c.Distinct(ctx, "a", refused).Err() },
		"DeleteOne":         func() error { _, err := c.DeleteOne(ctx, refused); return err },
		"DeleteMany":        func() error { _, err := c.DeleteMany(ctx, refused); return err },
		"UpdateOne":         func() error { _, err := c.UpdateOne(ctx, refused, set); return err },
		"UpdateMany":        func() error { _, err := c.UpdateMany(ctx, refused, set); return err },
		"ReplaceOne":        func() error { _, err := c.ReplaceOne(ctx, refused, bson.D{}); return err },
		"Aggregate": func() error {
			_, err := c.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: refused}}})
			return err
		},
		"BulkWrite": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewDeleteOneModel().SetFilter(refused)})
			return err
		},
		"$pull": func() error { _, err := c.UpdateOne(ctx, plain, pull); return err },
		"$pull in a map": func() error {
			_, err := c.UpdateOne(ctx, plain, bson.M{"$pull": bson.M{"l": u1}})
			return err
		},
		"$pull by id": func() error { _, err := c.UpdateByID(ctx, u1, pull); return err },
		"an upsert": func() error {
			_, err := c.UpdateOne(ctx, plain, set, options.UpdateOne().SetUpsert(true))
			return err
		},
		"an upsert by id": func() error {
			_, err := c.UpdateByID(ctx, u1, set, options.UpdateOne().SetUpsert(true))
			return err
		},
		"an upsert of many": func() error {
			_, err := c.UpdateMany(ctx, plain, set, options.UpdateMany().SetUpsert(true))
			return err
		},
		"an upsert by replacement": func() error {
			_, err := c.ReplaceOne(ctx, plain, bson.D{}, options.Replace().SetUpsert(true))
			return err
		},
		"an upsert and find": func() error {
			return c.FindOneAndUpdate(ctx, plain, set, options.FindOneAndUpdate().SetUpsert(true)).Err()
		},
		"an upsert in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateOneModel().SetFilter(plain).SetUpdate(set).SetUpsert(true)})
			return err
		},
		"an upsert after other options": func() error {
			_, err := c.UpdateOne(ctx, plain, set, nil, (*options.UpdateOneOptionsBuilder)(nil), setters{nil, func(o *options.UpdateOneOptions) error {
				o.Upsert = new(bool)
				return nil
			}}, options.UpdateOne().SetUpsert(true))
			return err
		},
		"a replacement in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewReplaceOneModel().SetFilter(refused).SetReplacement(bson.D{})})
			return err
		},
		"an upsert by replacement in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewReplaceOneModel().SetFilter(plain).SetReplacement(bson.D{}).SetUpsert(true)})
			return err
		},
		"an update of many in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateManyModel().SetFilter(refused).SetUpdate(set)})
			return err
		},
		"an upsert of many in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateManyModel().SetFilter(plain).SetUpdate(set).SetUpsert(true)})
			return err
		},
		"$pull of many in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateManyModel().SetFilter(plain).SetUpdate(pull)})
			return err
		},
		"an array filter of many in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewUpdateManyModel().SetFilter(bson.D{}).SetUpdate(set).SetArrayFilters([]any{refused}),
			})
			return err
		},
		"a deletion of many in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewDeleteManyModel().SetFilter(refused)})
			return err
		},
		"an array filter": func() error {
			_, err := c.UpdateOne(ctx, bson.D{}, set, options.UpdateOne().SetArrayFilters([]any{refused}))
			return err
		},
		"a projection": func() error {
			_, err := c.Find(ctx, plain, options.Find().SetProjection(bson.D{{Key: "a", Value: bson.D{{Key: "$filter", Value: u1}}}}))
			return err
		},
		"the projection of FindOne": func() error {
			return c.FindOne(ctx, plain, options.FindOne().SetProjection(bson.D{{Key: "a", Value: u1}})).Err()
		},
		"min": func() error {
			_, err := c.Find(ctx, plain, options.Find().SetMin(plain).SetHint("a_1"))
			return err
		},
		"max": func() error { return c.FindOne(ctx, plain, options.FindOne().SetMax(plain).SetHint("a_1")).Err() },
		"let": func() error { _, err := c.DeleteOne(ctx, plain, options.DeleteOne().SetLet(plain)); return err },
		"let of a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewDeleteOneModel().SetFilter(plain)}, options.BulkWrite().SetLet(plain))
			return err
		},
		"let of Aggregate": func() error {
			_, err := c.Aggregate(ctx, mongo.Pipeline{}, options.Aggregate().SetLet(plain))
			return err
		},
		"Watch": func() error {
			_, err := c.Watch(ctx, mongo.Pipeline{{{Key: "$match", Value: refused}}})
			return err
		},
		"an expression of an update": func() error {
			_, err := c.UpdateOne(ctx, plain, mongo.Pipeline{{{Key: "$set", Value: bson.D{
				{Key: "b", Value: bson.D{{Key: "$eq", Value: bson.A{"$a", u1}}}}}}}})
			return err
		},
		"a pipeline that is an array": func() error {
			_, err := c.Aggregate(ctx, [1]bson.D{{{Key: "$match", Value: refused}}})
			return err
		},
		"an array filter in a bulk write": func() error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewUpdateOneModel().SetFilter(bson.D{}).SetUpdate(set).SetArrayFilters([]any{refused}),
			})
			return err
		},
	} {
		var uncovered *UncoveredError
		var failed mongo.MarshalError
		err := f()
		if !errors.As(err, &uncovered) {
			t.Errorf("%s: got %v, want an UncoveredError", name, err)
		} else if errors.As(err, &failed) {
			switch failed.Value.(type) {
			case *argument, *updateArgument:
				t.Errorf("%s: the error shows a %T", name, failed.Value)
			}
		}
		if text := fmt.Sprint(err); strings.Contains(text, "argument") {
			t.Errorf("%s: the error names an internal type: %s", name, text)
		}
	}
}

type (
	named   [16]byte
	octets  []byte
	numbers []int
)

// What can be matched or written as it is goes to the server.
func TestNotRefused(t *testing.T) {
	coll, ctx := unreachable(t)
	c, err := Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy,
		WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.RegisterUUIDType(reflect.TypeFor[named]()) }))
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"a registered type": func() error { _, err := c.Find(ctx, bson.D{{Key: "a", Value: named(u1)}}); return err },
		"the value of a field of an update": func() error {
			_, err := c.UpdateOne(ctx, bson.D{}, mongo.Pipeline{{{Key: "$set", Value: bson.D{{Key: "a", Value: u1}}}}})
			return err
		},
		"$elemMatch in a projection": func() error {
			_, err := c.Find(ctx, bson.D{}, options.Find().SetProjection(bson.D{{Key: "l", Value: bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "u", Value: u1}}}}}}))
			return err
		},
	} {
		if err := f(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	update, many := modelOf(mongo.NewUpdateOneModel()).(*mongo.UpdateOneModel), modelOf(mongo.NewUpdateManyModel()).(*mongo.UpdateManyModel)
	if update.ArrayFilters != nil || many.ArrayFilters != nil {
		t.Errorf("models without array filters got %v and %v", update.ArrayFilters, many.ArrayFilters)
	}
}

// setters are options of one call.
type setters []func(*options.UpdateOneOptions) error

func (s setters) List() []func(*options.UpdateOneOptions) error { return s }

// The Request of a write error is the caller's model, whatever the order of the errors.
func TestRequestsOfWriteErrors(t *testing.T) {
	models := []mongo.WriteModel{mongo.NewDeleteOneModel(), mongo.NewDeleteManyModel(), mongo.NewUpdateOneModel()}
	failed := mongo.BulkWriteException{WriteErrors: make([]mongo.BulkWriteError, len(models))}
	for i := range models {
		failed.WriteErrors[i].Index = len(models) - 1 - i
	}
	showModels(fmt.Errorf("wrapped: %w", failed), models)
	for i, e := range failed.WriteErrors {
		if e.Request != models[len(models)-1-i] {
			t.Errorf("error %d has the request %T", i, e.Request)
		}
	}
	showModels(nil, models)
	showModels(errors.New("another"), models)
}

// A filter that encodes itself, and in another way each time, is refused by Distinct, too.
func TestDistinctOfAChangingFilter(t *testing.T) {
	coll, ctx := unreachable(t)
	c, err := Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Distinct(ctx, "a", changingDocument{new(int)}).Err(); !errors.Is(err, errUnstable) {
		t.Errorf("got %v, want %v", err, errUnstable)
	}
}

// A changingDocument is a document with another element each time.
type changingDocument struct{ n *int }

func (c changingDocument) MarshalBSON() ([]byte, error) {
	*c.n++
	return bson.Marshal(bson.D{{Key: fmt.Sprint("k", *c.n), Value: 1}})
}

// A document that is encoded in two ways is refused whatever it is to the driver's method.
func TestChangingDocuments(t *testing.T) {
	for role := filterRole; role <= valueRole; role++ {
		for _, upsert := range []bool{false, true} {
			a := &argument{value: changingDocument{new(int)}, role: role, upsert: upsert}
			if _, err := rewrite(t, a, uuidrep.JavaLegacy, uuidrep.Standard); !errors.Is(err, errUnstable) {
				t.Errorf("role %d: got %v, want %v", role, err, errUnstable)
			}
		}
	}
}

// What the driver refuses, it refuses as ever.
func TestDriversErrors(t *testing.T) {
	coll, ctx := unreachable(t)
	c, err := Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	plain := coll.Clone()
	for name, f := range map[string]func(finder) error{
		"distinct": func(c finder) error { return c.Distinct(ctx, "a", map[string]any{"a": make(chan int)}).Err() },
		"distinct of a failing filter": func(c finder) error {
			return c.Distinct(ctx, "a", failingFilter{}).Err()
		},
		"distinct of a pointer": func(c finder) error { return c.Distinct(ctx, "a", &struct{ C chan int }{}).Err() },
		"distinct of bytes":     func(c finder) error { return c.Distinct(ctx, "a", []byte{1, 2, 3}).Err() },
		"distinct of a Raw":     func(c finder) error { return c.Distinct(ctx, "a", bson.Raw{9, 0, 0, 0, 0}).Err() },
		"distinct of nil":       func(c finder) error { return c.Distinct(ctx, "a", nil).Err() },
		"nil filter":            func(c finder) error { _, err := c.Find(ctx, nil); return err },
		"nil update":            func(c finder) error { _, err := c.UpdateOne(ctx, bson.D{}, nil); return err },
		"empty update":          func(c finder) error { _, err := c.UpdateOne(ctx, bson.D{}, bson.D{}); return err },
		"a replacement":         func(c finder) error { _, err := c.UpdateOne(ctx, bson.D{}, bson.D{{Key: "a", Value: 1}}); return err },
		"nil id":                func(c finder) error { _, err := c.UpdateByID(ctx, nil, bson.D{}); return err },
		"nil pipeline":          func(c finder) error { _, err := c.Aggregate(ctx, nil); return err },
		"a document":            func(c finder) error { _, err := c.Aggregate(ctx, bson.D{{Key: "$match", Value: 1}}); return err },
		"no models":             func(c finder) error { _, err := c.BulkWrite(ctx, nil); return err },
		"a nil model":           func(c finder) error { _, err := c.BulkWrite(ctx, []mongo.WriteModel{nil}); return err },
		"a nil bulk filter": func(c finder) error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewDeleteOneModel()})
			return err
		},
		"a channel":         func(c finder) error { _, err := c.Find(ctx, make(chan int)); return err },
		"bytes as pipeline": func(c finder) error { _, err := c.Aggregate(ctx, octets{1, 2, 3}); return err },
		"bytes as update":   func(c finder) error { _, err := c.UpdateOne(ctx, bson.D{}, octets{1, 2, 3}); return err },
		"numbers as update": func(c finder) error { _, err := c.UpdateOne(ctx, bson.D{}, numbers{1, 2, 3}); return err },
		"bytes of a document as update": func(c finder) error {
			_, err := c.UpdateOne(ctx, bson.D{}, bsoncore.Document(must(bson.Marshal(bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}))))
			return err
		},
		"nothing as an update": func(c finder) error { _, err := c.UpdateOne(ctx, bson.D{}, octets{}); return err },
		"cancelled":            func(c finder) error { _, err := c.Find(ctx, bson.D{}); return err },
	} {
		want, got := f(plain), f(c)
		if want == nil || got == nil || withoutTopology(got) != withoutTopology(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// withoutTopology returns the text of an error without what the client knows of the server at that moment.
func withoutTopology(err error) string {
	text, _, _ := strings.Cut(err.Error(), ", current topology: ")
	return text
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// A failingFilter encodes itself, with an error.
type failingFilter struct{}

func (failingFilter) MarshalBSON() ([]byte, error) { return nil, errors.New("not today") }

type finder = interface {
	Distinct(context.Context, string, any, ...options.Lister[options.DistinctOptions]) *mongo.DistinctResult
	Find(context.Context, any, ...options.Lister[options.FindOptions]) (*mongo.Cursor, error)
	UpdateOne(context.Context, any, any, ...options.Lister[options.UpdateOneOptions]) (*mongo.UpdateResult, error)
	UpdateByID(context.Context, any, any, ...options.Lister[options.UpdateOneOptions]) (*mongo.UpdateResult, error)
	Aggregate(context.Context, any, ...options.Lister[options.AggregateOptions]) (*mongo.Cursor, error)
	BulkWrite(context.Context, []mongo.WriteModel, ...options.Lister[options.BulkWriteOptions]) (*mongo.BulkWriteResult, error)
}

// spoil returns an option that makes the builder of its nth call return an error.
func spoil(n int) Option {
	return WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) {
		if n--; n == 0 {
			b.RegisterUUIDType(nil)
		}
	})
}

func TestWrapMistakes(t *testing.T) {
	coll, _ := unreachable(t)
	for name, f := range map[string]func() (*Collection, error){
		"nil collection": func() (*Collection, error) { return Wrap(nil, uuidrep.Standard, uuidrep.JavaLegacy) },
		"nil option":     func() (*Collection, error) { return Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy, nil) },
		"nil function": func() (*Collection, error) {
			return Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy, WithRegistryBuilder(nil))
		},
		"the same twice":       func() (*Collection, error) { return Wrap(coll, uuidrep.Standard, uuidrep.Standard) },
		"two byte orders":      func() (*Collection, error) { return Wrap(coll, uuidrep.CSharpLegacy, uuidrep.JavaLegacy) },
		"unspecified":          func() (*Collection, error) { return Wrap(coll, uuidrep.Unspecified, uuidrep.JavaLegacy) },
		"also nothing":         func() (*Collection, error) { return Wrap(coll, uuidrep.Standard, uuidrep.Unspecified) },
		"the first builder's":  func() (*Collection, error) { return Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy, spoil(1)) },
		"the second builder's": func() (*Collection, error) { return Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy, spoil(2)) },
		"a builder's own": func() (*Collection, error) {
			return Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy, WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.RegisterUUIDType(nil) }))
		},
	} {
		if c, err := f(); err == nil || c != nil || !strings.HasPrefix(err.Error(), "mixedrep: ") {
			t.Errorf("%s: got %v, %v, want an error", name, c, err)
		}
	}
}

// A clone goes on matching both, whatever registry it is given.
func TestClone(t *testing.T) {
	coll, ctx := unreachable(t)
	c, err := Wrap(coll, uuidrep.Standard, uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	clone := c.Clone(options.Collection().SetRegistry(bson.NewRegistry()))
	var uncovered *UncoveredError
	if _, err := clone.Find(ctx, bson.D{{Key: "$expr", Value: u1}}); !errors.As(err, &uncovered) {
		t.Errorf("got %v, want an UncoveredError", err)
	}
}

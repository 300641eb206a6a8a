package autoid

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

type omitTruncated[T any] struct {
	ID T `bson:"_id,omitempty,truncate"`
}

type truncatedInline struct {
	Name string             `bson:"name"`
	Base omitTruncated[int] `bson:",inline"`
}

// inserted is a document that cannot be read, and so takes any id.
type inserted struct {
	ID bson.ObjectID `bson:"_id,omitempty"`
}

func (*inserted) UnmarshalBSON([]byte) error { return errors.New("never read") }

// TestMisfits inserts with many sources into documents of many types, and reads the document back
// into a new value of its type as the client does. The insert is refused if and only if that fails.
func TestMisfits(t *testing.T) {
	type inline struct {
		Name string       `bson:"name"`
		Base *omitID[int] `bson:",inline"`
	}
	u, oid := uuid.UUID{1, 2, 3}, bson.ObjectID{1, 2, 3}
	ids := []any{
		oid, u, &u, uuidrep.StandardUUID{UUID: u}, uuidrep.JavaLegacyUUID{UUID: u}, u.String(), "text", int32(5), int64(1) << 40, 2.5, 0.1, float32(0.1), true,
		bson.D{{Key: "A", Value: 1}}, bson.Binary{Subtype: 4, Data: u[:]}, bson.Timestamp{T: 1},
	}
	docs := []any{
		idOmitted{}, &idOmitted{}, omitID[bson.ObjectID]{}, omitID[*bson.ObjectID]{}, omitID[string]{}, omitID[int]{}, omitID[int16]{},
		omitID[float64]{}, omitID[any]{}, omitID[*uuid.UUID]{}, omitID[uuid.NullUUID]{}, omitID[uuidrep.StandardUUID]{},
		omitID[uuidrep.JavaLegacyUUID]{}, omitID[bson.Binary]{}, omitID[bson.RawValue]{}, omitID[[]byte]{}, omitID[bson.D]{},
		omitID[struct{ A int }]{}, omitID[plainKey]{}, &inline{}, bson.M{}, bson.D{}, map[string]string{}, map[string]int{},
		map[string]uuid.UUID{}, map[string]any{}, &map[string]bson.ObjectID{}, omitTruncated[int]{}, &omitTruncated[float32]{},
		omitTruncated[uint8]{}, omitTruncated[string]{}, truncatedInline{}, omitTruncated[*uuid.UUID]{},
	}
	refused, taken := 0, 0
	for name, newRegistry := range registries(t) {
		for _, opts := range []options.BSONOptions{{}, {ObjectIDAsHexString: true}, {AllowTruncatingDoubles: true}} {
			server := newTestServer()
			client, _ := server.client(t, newRegistry(), options.Client().SetBSONOptions(&opts))
			plain := client.Database("db").Collection("c")
			for _, id := range ids {
				for _, doc := range docs {
					coll := Wrap(plain, always(id), WithGenericIDs(), WithMisfitIDs())
					if _, err := coll.InsertOne(ctx, doc); err != nil && !mongo.IsDuplicateKeyError(err) {
						t.Fatal(err)
					}
					sent := server.sent()
					err := readAs(t, plain, sent[len(sent)-1], opts, doc)
					n := len(sent)
					_, insertErr := Wrap(plain, always(id), WithGenericIDs()).InsertOne(ctx, doc)
					if mongo.IsDuplicateKeyError(insertErr) {
						insertErr = nil
					}
					if (insertErr != nil) != (err != nil) {
						t.Errorf("%s, %+v: a %T into a %T: the insert gave %v, reading gives %v", name, opts, id, doc, insertErr, err)
					}
					if insertErr == nil {
						taken++
						continue
					}
					refused++
					var failed *IDError
					if !errors.As(insertErr, &failed) || !strings.Contains(insertErr.Error(), fmt.Sprintf("%T", id)) {
						t.Errorf("%s, %+v: a %T into a %T: got %v", name, opts, id, doc, insertErr)
					}
					if len(server.sent()) != n {
						t.Error("a refused document was sent")
					}
				}
			}
		}
	}
	if refused < 500 || taken < 500 {
		t.Errorf("%d refused, %d taken", refused, taken)
	}
}

// readAs reads data, a document of coll, into a new value of the type of doc.
func readAs(t *testing.T, coll *mongo.Collection, data bson.Raw, opts options.BSONOptions, doc any) error {
	e, err := newContexts(coll).encoding()
	if err != nil {
		t.Fatal(err)
	}
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(data)))
	dec.SetRegistry(e.ec.Registry)
	if opts.ObjectIDAsHexString {
		dec.ObjectIDAsHexString()
	}
	if opts.AllowTruncatingDoubles {
		dec.AllowTruncatingDoubles()
	}
	return dec.Decode(reflect.New(reflect.TypeOf(doc)).Interface())
}

// TestMisfitsElsewhere tests that a Document is not refused if an option of a client reads its id,
// and that nothing is refused for documents that are not read by their fields.
func TestMisfitsElsewhere(t *testing.T) {
	reg := registered()
	if _, err := encode(reg, Document(always(bson.ObjectID{1}), omitID[string]{})); err != nil {
		t.Error(err) // with ObjectIDAsHexString
	}
	if _, err := encode(reg, Document(always("x"), omitID[bson.ObjectID]{})); err == nil {
		t.Error("a string for an ObjectID was not refused")
	}
	if _, err := encode(reg, Document(always("x"), &inserted{})); err != nil {
		t.Error(err)
	}
	if _, err := encode(reg, Document(always("x"), omitID[fmt.Stringer]{})); err != nil {
		t.Error(err)
	}
	// The error has what the registry writes for the id.
	for want, id := range map[string]any{"the binary of subtype 0 that": uuid.UUID{1}, "the string that": "x", "the binary of subtype 5 that": bson.Binary{Subtype: 5, Data: []byte{1}}} {
		if _, err := encode(reg, Document(always(id), omitID[bson.ObjectID]{}, WithGenericIDs())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	// The text of a UUID in a binary value is no UUID, and the error says so.
	text := bson.Binary{Subtype: 3, Data: []byte("00112233-4455-6677-8899-aabbccddeeff")}
	if uuids, err := bsoncodec.NewRegistry(uuidrep.JavaLegacy); err != nil {
		t.Error(err)
	} else {
		Register(uuids)
		var length *uuidrep.LengthError
		for _, doc := range []any{omitID[uuid.UUID]{}, omitID[*uuid.UUID]{}, omitID[uuidrep.JavaLegacyUUID]{}, omitID[uuidrep.ID[int]]{}} {
			if _, err := encode(uuids, Document(always(text), doc)); !errors.As(err, &length) || !length.Text {
				t.Errorf("%T: got %v", doc, err)
			}
		}
	}
	// A nil id decides nothing.
	ids := []any{(*uuid.UUID)(nil), &uuid.UUID{1}}
	src := SourceFunc(func() (any, error) { id := ids[0]; ids = ids[1:]; return id, nil })
	if _, err := encode(reg, Document(src, omitID[int]{}, WithGenericIDs())); !errors.Is(err, errNilID) {
		t.Errorf("got %v", err)
	}
	if _, err := encode(reg, Document(src, omitID[int]{}, WithGenericIDs())); err == nil {
		t.Error("a UUID for a number was not refused")
	}
}

// TestMisfitsDecidedOnce tests that an id is decoded once for a type of ids and of fields, when many
// goroutines insert first.
func TestMisfitsDecidedOnce(t *testing.T) {
	var mu sync.Mutex
	decoded := 0
	reg := registered()
	type token string
	reg.RegisterTypeDecoder(reflect.TypeFor[token](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
			mu.Lock()
			defer mu.Unlock()
			decoded++
			s, err := vr.ReadString()
			val.SetString(s)
			return err
		}))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				for _, doc := range []any{omitID[token]{}, lateOmit[token]{}, map[string]token{}} {
					if _, err := encode(reg, Document(always("x"), doc)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if decoded < 1 || decoded > 8 { // goroutines that meet a type first at the same time decide alike
		t.Errorf("decoded %d times", decoded)
	}
}

type lateOmit[T any] struct {
	ID   T      `bson:"_id,omitempty"`
	Name string `bson:"name"`
}

// TestTypedIDs tests that a UUID of the source is refused for a type that marshals itself in another representation than that of
// the registry, with and without WithWriteBack and in an upsert, until the type is registered. WithMisfitIDs allows it.
func TestTypedIDs(t *testing.T) {
	type order = omitID[uuidrep.ID[int]]
	type pointer = omitID[*uuidrep.ID[int]]
	type typed = map[string]uuidrep.ID[int]
	type set struct {
		Set any `bson:"$set"`
	}
	id := uuid.UUID{1, 2, 3}
	insert := func(doc func() any) func(*Collection) error {
		return func(c *Collection) error {
			_, err := c.InsertOne(ctx, doc())
			return err
		}
	}
	upsert := func(update any) func(*Collection) error {
		return func(c *Collection) error {
			_, err := c.UpdateOne(ctx, bson.M{"a": 1}, update, options.UpdateOne().SetUpsert(true))
			return err
		}
	}
	type call struct {
		name string
		do   func(*Collection) error
	}
	inserts := []call{
		{"a struct", insert(func() any { return &order{} })}, {"a pointer", insert(func() any { return &pointer{} })},
		{"a map", insert(func() any { return typed{} })},
		{"many", func(c *Collection) error {
			_, err := c.InsertMany(ctx, []order{{}, {}})
			return err
		}},
		{"BulkWrite", func(c *Collection) error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(&order{})})
			return err
		}},
		{"ClientWrites", func(c *Collection) error {
			_, err := c.ClientWrites(mongo.NewClientInsertOneModel().SetDocument(&order{}))
			return err
		}},
	}
	upserts := []call{
		{"D", upsert(bson.D{{Key: "$set", Value: order{}}})}, {"D of a pointer", upsert(&bson.D{{Key: "$set", Value: &order{}}})},
		{"M", upsert(bson.M{"$setOnInsert": order{}})}, {"map", upsert(map[string]order{"$set": {}})}, {"struct", upsert(&set{order{}})},
	}
	for _, rep := range []uuidrep.Representation{uuidrep.JavaLegacy, uuidrep.CSharpLegacy, uuidrep.PythonLegacy, uuidrep.Standard, uuidrep.Unspecified} {
		for _, registered := range []bool{false, true} {
			b := bsoncodec.NewRegistryBuilder(rep).With(Register)
			if registered {
				b.RegisterUUIDType(reflect.TypeFor[uuidrep.ID[int]]())
			}
			reg, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			server := newTestServer()
			server.upserted = "upserted"
			client, started := server.client(t, reg)
			plain := client.Database("db").Collection("c")
			for n, opts := range [][]Option{nil, {WithWriteBack()}, {WithMisfitIDs()}, {WithWriteBack(), WithMisfitIDs()}} {
				allowed := n >= 2
				for i, c := range append(inserts, upserts...) {
					what := fmt.Sprintf("%v, registered %v, options %d, %s", rep, registered, len(opts), c.name)
					n := len(started())
					err := c.do(Wrap(plain, always(id), opts...))
					if mongo.IsDuplicateKeyError(err) {
						err = nil
					}
					var failed *IDError
					switch {
					case rep == uuidrep.Unspecified:
						// No UUID can be written, unless WithWriteBack makes it an ID, which WithMisfitIDs allows.
						if wantErr := registered || i >= len(inserts) || !allowed || len(opts) == 1; (err != nil) != wantErr {
							t.Errorf("%s: got %v", what, err)
						}
					case registered || rep == uuidrep.Standard || allowed:
						if err != nil {
							t.Errorf("%s: got %v", what, err)
						}
					case !errors.As(err, &failed) || len(started()) != n:
						t.Errorf("%s: got %v", what, err)
					case !strings.Contains(err.Error(), "register uuidrep.ID[int] with RegisterUUIDType") || strings.Contains(err.Error(), "WithMisfitIDs"):
						t.Errorf("%s: the way out is not named: %v", what, err)
					case strings.Count(err.Error(), "autoid:") != 1:
						t.Errorf("%s: got %v", what, err)
					}
				}
			}
			// A field type that names its representation is as it was, and so is a part of a document in an update.
			if rep == uuidrep.Unspecified {
				continue
			}
			for _, c := range []call{
				{"StandardUUID", insert(func() any { return &omitID[uuidrep.StandardUUID]{} })},
				{"an update of a struct without _id", upsert(bson.M{"$set": struct{ A int }{1}})},
				{"an update of a map", upsert(bson.M{"$set": map[string]string{"a": "b"}})},
				{"another operator", upsert(bson.M{"$inc": struct{ N int }{1}})},
			} {
				if err := c.do(Wrap(plain, always(id), WithWriteBack())); err != nil && !mongo.IsDuplicateKeyError(err) {
					t.Errorf("%v, %s: got %v", rep, c.name, err)
				}
			}
			// The type of the source that is not registered is named, too.
			_, err = Wrap(plain, always(uuidrep.ID[int](id))).InsertOne(ctx, &omitID[uuid.UUID]{})
			if fits := registered || rep == uuidrep.Standard; fits != (err == nil || mongo.IsDuplicateKeyError(err)) ||
				!fits && !strings.Contains(err.Error(), "register uuidrep.ID[int] with RegisterUUIDType") {
				t.Errorf("%v, registered %v: got %v", rep, registered, err)
			}
		}
	}
	// The source is asked once, and the document stays as it is.
	drawn, doc := 0, &order{}
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).With(Register).Build()
	if err != nil {
		t.Fatal(err)
	}
	client, _ := newTestServer().client(t, reg)
	once := SourceFunc(func() (any, error) { drawn++; return id, nil })
	if _, err := Wrap(client.Database("db").Collection("c"), once, WithWriteBack()).InsertOne(ctx, doc); err == nil || drawn != 1 || *doc != (order{}) {
		t.Errorf("got %v, %d drawn, %v", err, drawn, doc)
	}
	// The error of a type without methods has the call to make already.
	type bare [16]byte
	if _, err := encode(reg, Document(once, omitID[bare]{})); err == nil || strings.Contains(err.Error(), "WithMisfitIDs") || strings.Count(err.Error(), "RegisterUUIDType") != 1 {
		t.Errorf("got %v", err)
	}
	// It is not told to register a type that is.
	reg, err = bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[uuidrep.ID[int]]()).With(Register).Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []any{&order{}, &omitID[uuid.UUID]{}} {
		if _, err := encode(reg, Document(always(uuidrep.JavaLegacyUUID{UUID: id}), doc)); err == nil || strings.Contains(err.Error(), "register ") {
			t.Errorf("%T: got %v", doc, err)
		}
	}
}

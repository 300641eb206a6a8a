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
					coll := Wrap(plain, always(id), AllowGenericIDs(), AllowMisfitIDs())
					if _, err := coll.InsertOne(ctx, doc); err != nil && !mongo.IsDuplicateKeyError(err) {
						t.Fatal(err)
					}
					sent := server.sent()
					err := readAs(t, plain, sent[len(sent)-1], opts, doc)
					n := len(sent)
					_, insertErr := Wrap(plain, always(id), AllowGenericIDs()).InsertOne(ctx, doc)
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
		if _, err := encode(reg, Document(always(id), omitID[bson.ObjectID]{}, AllowGenericIDs())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	// A nil id decides nothing.
	ids := []any{(*uuid.UUID)(nil), &uuid.UUID{1}}
	src := SourceFunc(func() (any, error) { id := ids[0]; ids = ids[1:]; return id, nil })
	if _, err := encode(reg, Document(src, omitID[int]{}, AllowGenericIDs())); !errors.Is(err, errNilID) {
		t.Errorf("got %v", err)
	}
	if _, err := encode(reg, Document(src, omitID[int]{}, AllowGenericIDs())); err == nil {
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

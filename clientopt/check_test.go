package clientopt

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidaudit"
	"github.com/bsonids/bsonids/uuidrep"
)

// silence counts the commands of clients, whose dialer fails.
type silence struct{ commands atomic.Int64 }

func (*silence) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no network")
}

func (s *silence) options() *options.ClientOptions {
	return options.Client().SetDialer(s).SetMonitor(&event.CommandMonitor{
		Started: func(context.Context, *event.CommandStartedEvent) { s.commands.Add(1) },
	})
}

// eachSetup checks a client, a database and a collection of it.
func eachSetup(t *testing.T, client *mongo.Client, check func(what string, s Setup, err error)) {
	t.Helper()
	s, err := Check(client)
	check("client", s, err)
	s, err = Check(client.Database("d"))
	check("database", s, err)
	s, err = Check(client.Database("d").Collection("c"))
	check("collection", s, err)
}

// Check tells the representation, the plans and the options that are at work in a client, a database or a
// collection.
func TestCheck(t *testing.T) {
	quiet := new(silence)
	for _, r := range []uuidrep.Representation{
		uuidrep.Unspecified, uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy,
	} {
		for i := -1; i < reflect.TypeFor[options.BSONOptions]().NumField(); i++ {
			bsonOpts, want, text := &options.BSONOptions{}, bsoncodec.Options{}, r.String()
			if i >= 0 {
				bsonOpts, want = withField(i)
				text += ", " + reflect.TypeFor[options.BSONOptions]().Field(i).Name
			}
			client, err := Connect("mongodb://h/?uuidRepresentation="+r.String(), WithClientOptions(quiet.options().SetBSONOptions(bsonOpts)),
				WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.EncodeZeroAsNull() }))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
			eachSetup(t, client, func(what string, s Setup, err error) {
				if (err != nil) != (r == uuidrep.Unspecified) || s != (Setup{Representation: r, Options: want}) || s.String() != text {
					t.Errorf("the %s: got %v, %v, want %s", what, s, err, text)
				}
				// The error tells what cannot be done, and how to choose.
				if err != nil && (!errors.Is(err, uuidrep.ErrUnspecified) || !strings.HasPrefix(err.Error(), "clientopt: the "+what+" cannot write a uuid.UUID") ||
					!strings.Contains(err.Error(), "uuidRepresentation")) {
					t.Errorf("the %s: got %v", what, err)
				}
			})
			if i > 0 {
				continue
			}
			java, err := Collection(client.Database("d").Collection("c"), uuidrep.JavaLegacy)
			if err != nil {
				t.Fatal(err)
			}
			if s, err := Check(java); err != nil || s.Representation != uuidrep.JavaLegacy {
				t.Errorf("a collection of its own: got %v, %v", s, err)
			}
		}
	}
	text, err := Connect("mongodb://h/?uuidRepresentation=standard", WithClientOptions(quiet.options()),
		WithAudit(func(uuidaudit.Finding) {}), WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.EncodeAsString() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = text.Disconnect(context.Background()) })
	eachSetup(t, text, func(what string, s Setup, err error) {
		if err != nil || !s.Text || s.String() != "text" {
			t.Errorf("the %s with text: got %v, %v", what, s, err)
		}
	})
	if n := quiet.commands.Load(); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// It says nothing about a registry that is not ours, and names the way out.
func TestCheckForeign(t *testing.T) {
	// A hand-written codec, which may well be right.
	own := bson.NewRegistry()
	own.RegisterTypeEncoder(reflect.TypeFor[uuid.UUID](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			t.Error("the foreign codec was called")
			return vw.WriteNull()
		}))
	ours, err := ApplyURI("mongodb://h/?uuidRepresentation=standard")
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]*options.ClientOptions{
		"mongo.Connect": options.Client().ApplyURI("mongodb://h/?uuidRepresentation=standard"),
		"own codec":     options.Client().ApplyURI("mongodb://h/").SetRegistry(own),
		"set later":     ours.SetRegistry(own),
	} {
		quiet := new(silence)
		client, err := mongo.Connect(opts, quiet.options())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
		eachSetup(t, client, func(what string, s Setup, err error) {
			if !errors.Is(err, ErrForeignRegistry) || s != (Setup{}) || !strings.HasPrefix(err.Error(), "clientopt: ") ||
				!strings.Contains(err.Error(), "of the "+what) || !strings.Contains(err.Error(), "clientopt.Connect") {
				t.Errorf("%s, the %s: got %v, %v", name, what, s, err)
			}
		})
		if n := quiet.commands.Load(); n != 0 {
			t.Errorf("%s: %d commands were sent", name, n)
		}
	}
}

// Check of nil, of a zero value and of a registry that this library did not build is an error that says what
// to do.
func TestCheckMistakes(t *testing.T) {
	if _, err := Check((*mongo.Client)(nil)); err == nil || err.Error() != "clientopt: the client is nil" {
		t.Error(err)
	}
	if _, err := Check((*mongo.Database)(nil)); err == nil || err.Error() != "clientopt: the database is nil" {
		t.Error(err)
	}
	if _, err := Check(new(mongo.Collection)); err == nil || errors.Is(err, ErrForeignRegistry) {
		t.Error(err)
	}
	client, err := Connect("mongodb://h/?uuidRepresentation=standard", WithClientOptions(new(silence).options()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	reg, _, err := CollectionCodec(client.Database("d").Collection("c"))
	if err != nil {
		t.Fatal(err)
	}
	reg.RegisterTypeEncoder(reflect.TypeFor[uuid.UUID](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			return vw.WriteBinary(make([]byte, 16))
		}))
	eachSetup(t, client, func(what string, s Setup, err error) {
		if err == nil || s != (Setup{}) || !strings.Contains(err.Error(), "codec of the caller's") || !strings.Contains(err.Error(), "it writes binary") {
			t.Errorf("the %s with a codec of the caller's: got %v, %v", what, s, err)
		}
	})
}

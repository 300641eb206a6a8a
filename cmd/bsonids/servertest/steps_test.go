package servertest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
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
	s, db := started(t)
	var customers []uuid.UUID
	store := func(c service) {
		t.Helper()
		u := uuid.New()
		if _, err := c.InsertOne(t.Context(), bson.D{{Key: "customer", Value: u}}); err != nil {
			t.Fatal(err)
		}
		customers = append(customers, u)
	}
	misses := func(c service) (err error) {
		for _, u := range customers {
			var got struct{ Customer uuid.UUID }
			if e := c.FindOne(t.Context(), bson.D{{Key: "customer", Value: u}}).Decode(&got); e != nil || got.Customer != u {
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
	dir := prepared(t, s, convertFields("javaLegacy", "customer"))
	for _, args := range [][]string{applying(dir), {"undo", dir, "--write"}, applying(dir)} {
		command(t, s, args...).want(t, failure.ExitOK)
		together(3, 4)
	}
	for _, doc := range all(t, db.Collection("orders")) {
		if subtype, _ := doc.Lookup("customer").Binary(); subtype != bson.TypeBinaryUUID {
			t.Fatalf("%v has subtype %d after the conversion", doc, subtype)
		}
	}
	together(4, 5)
	together(5, 4) // back
}

const pymongo = `
import sys, uuid
from pymongo import MongoClient
from bson.binary import STANDARD, PYTHON_LEGACY, JAVA_LEGACY, CSHARP_LEGACY
from bson.codec_options import CodecOptions
db = MongoClient(sys.argv[1])[sys.argv[2]]
def coll(name, rep):
    return db.get_collection(name, codec_options=CodecOptions(uuid_representation=rep))
reps = {'standard': STANDARD, 'pythonLegacy': PYTHON_LEGACY, 'javaLegacy': JAVA_LEGACY, 'csharpLegacy': CSHARP_LEGACY}
for name, rep in reps.items():
    coll(name, rep).insert_many([{'_id': i, 'id': uuid.uuid4(), 'at': uuid.uuid1(), 'in': {'l': [uuid.uuid4()]}} for i in range(1000)])
for rep in (JAVA_LEGACY, CSHARP_LEGACY, STANDARD):
    coll('mixed', rep).insert_many([{'id': uuid.uuid4()} for i in range(300)])
coll('few', JAVA_LEGACY).insert_many([{'_id': i, 'id': uuid.UUID(int=i << 64 | i)} for i in range(1, 61)])
`

// apply converts what another driver wrote, in each representation and mixed. That driver then
// reads the same UUIDs.
func TestPyMongo(t *testing.T) {
	py := mongotest.Python(t)
	s := mongotest.Start(t)
	if out, err := exec.Command(py, "-c", pymongo, s.URI(), s.Database()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fields := scanned(t, s, "--all")
	for _, r := range legacy {
		for _, path := range []string{" id", " at", " in.l[]"} {
			want := r.String()
			if path == " at" && r != uuidrep.JavaLegacy { // version 1, or a sequential GUID of SQL Server in the other order
				want = "undetermined"
			}
			if f := fields[r.String()+path]; f.Counts.Legacy != 1000 || f.Evidence[0].Verdict != scan.Verdict(want) {
				t.Errorf("%v%s: %+v", r, path, f)
			}
		}
	}
	if f := fields["standard id"]; f.Counts.Standard != 1000 || len(f.Evidence) != 0 {
		t.Errorf("%+v", f)
	}
	if f := fields["mixed id"]; f.Counts.Standard != 300 || f.Evidence[0].Verdict != "mixed" {
		t.Errorf("%+v", f)
	}
	if f := fields["few id"]; f.Evidence[0].Verdict != scan.Undetermined {
		t.Errorf("%+v", f)
	}

	dir := filepath.Dir(planned(t, s, "--collection", "few"))
	changePlan(t, dir, convertFields("javaLegacy"), trusted("id"))
	command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
	check := `
import sys, uuid
from pymongo import MongoClient
from bson.binary import STANDARD
from bson.codec_options import CodecOptions
db = MongoClient(sys.argv[1])[sys.argv[2]]
docs = list(db.get_collection('few', codec_options=CodecOptions(uuid_representation=STANDARD)).find())
assert len(docs) == 60
for d in docs:
    assert d['id'] == uuid.UUID(int=d['_id'] << 64 | d['_id']), d
raw = list(db.get_collection('few').find({'id': {'$type': 5}}))
assert len(raw) == 60
`
	if out, err := exec.Command(py, "-c", check, s.URI(), s.Database()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

package integration

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/objectidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// The tests below cover the sections of docs/where-the-driver-bypasses.md that need a server. If
// one fails, the driver has changed, and the workaround of that section may not be necessary any
// more.

func TestDriverStoresGridFSMetadataWithARegistryOfItsOwn(t *testing.T) {
	ctx := context30(t)
	s := newServer(t)
	bucket := s.collection(uuidrep.JavaLegacy, "x").Database().GridFSBucket()
	reg, err := clientopt.NewClientRegistry(uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	metadata := bson.D{{Key: "owner", Value: testUUID}}
	for _, c := range []struct {
		name   string
		opts   *options.GridFSUploadOptionsBuilder
		stored bson.Binary
	}{
		{"default", options.GridFSUpload().SetMetadata(metadata), binary(0, octetsStandard)},
		{"SetRegistry", options.GridFSUpload().SetMetadata(metadata).SetRegistry(reg), binary(3, octetsJava)},
	} {
		if err := bucket.UploadFromStreamWithID(ctx, c.name, c.name, strings.NewReader("content"), c.opts); err != nil {
			t.Fatal(err)
		}
		for _, file := range s.stored("fs.files") {
			if file.Lookup("_id").StringValue() == c.name {
				checkStored(t, file, c.stored, "metadata", "owner")
			}
		}
		stream, err := bucket.OpenDownloadStream(ctx, c.name)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Owner uuid.UUID }
		err = bsoncodec.Unmarshal(reg, stream.GetFile().Metadata, &got)
		if native := c.name == "SetRegistry"; native != (err == nil) || native && got.Owner != testUUID {
			t.Errorf("%s: metadata reads as %v, %v", c.name, got, err)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDriverDecodesUpsertedIDsWithARegistryOfItsOwn(t *testing.T) {
	ctx := context30(t)
	s := newServer(t)
	coll := s.collection(uuidrep.CSharpLegacy, "items")
	wrapped := autoid.Wrap(coll, objectidgen.Default())
	upsert := func(update func(filter, doc any) (*mongo.UpdateResult, error)) (id uuid.UUID, got any) {
		t.Helper()
		id = uuid.New()
		res, err := update(bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "n", Value: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return id, res.UpsertedID
	}
	opts := options.Replace().SetUpsert(true)
	id, got := upsert(func(filter, doc any) (*mongo.UpdateResult, error) { return coll.ReplaceOne(ctx, filter, doc, opts) })
	want, err := uuidrep.NewBinaryWithRepresentation(id, uuidrep.CSharpLegacy)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("UpsertedID is %#v, want %v", got, want)
	}
	id, got = upsert(func(filter, doc any) (*mongo.UpdateResult, error) { return wrapped.ReplaceOne(ctx, filter, doc, opts) })
	if got != any(id) {
		t.Errorf("a Collection of autoid returns %#v, want %v", got, id)
	}
}

// TestDriverCollectionUUIDIsStandard tests that the UUID that the server gives a collection has
// subtype 4 for every client.
func TestDriverCollectionUUIDIsStandard(t *testing.T) {
	ctx := context30(t)
	s := newServer(t)
	coll := s.collection(uuidrep.JavaLegacy, "items")
	if _, err := coll.InsertOne(ctx, bson.D{}); err != nil {
		t.Fatal(err)
	}
	specs, err := coll.Database().ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: "items"}})
	if err != nil || len(specs) != 1 {
		t.Fatalf("%v, %v", specs, err)
	}
	if specs[0].UUID == nil {
		t.Skip("the server gives its collections no UUID")
	}
	if specs[0].UUID.Subtype != 4 {
		t.Errorf("the UUID has subtype %d", specs[0].UUID.Subtype)
	}
	list := func(results any) error {
		cursor, err := coll.Database().ListCollections(ctx, bson.D{{Key: "name", Value: "items"}})
		if err != nil {
			t.Fatal(err)
		}
		return cursor.All(ctx, results)
	}
	var java []struct{ Info struct{ UUID uuid.UUID } }
	if err := list(&java); err == nil || !strings.Contains(err.Error(), "StandardUUID") {
		t.Errorf("info.uuid reads as %v, %v; the error must name the way out", java, err)
	}
	var standard []struct {
		Info struct{ UUID uuidrep.StandardUUID }
	}
	if err := list(&standard); err != nil || !bytes.Equal(standard[0].Info.UUID.UUID[:], specs[0].UUID.Data) {
		t.Errorf("%v, %v", standard, err)
	}
}

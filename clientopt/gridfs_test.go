package clientopt

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/uuidrep"
)

// uploads are the four ways to upload a file.
var uploads = map[string]func(*testing.T, *GridFSBucket, ...options.Lister[options.GridFSUploadOptions]) error{
	"OpenUploadStream": func(t *testing.T, b *GridFSBucket, opts ...options.Lister[options.GridFSUploadOptions]) error {
		s, err := b.OpenUploadStream(t.Context(), "f", opts...)
		if err != nil {
			return err
		}
		return s.Close()
	},
	"OpenUploadStreamWithID": func(t *testing.T, b *GridFSBucket, opts ...options.Lister[options.GridFSUploadOptions]) error {
		s, err := b.OpenUploadStreamWithID(t.Context(), testUUID, "f", opts...)
		if err != nil {
			return err
		}
		return s.Close()
	},
	"UploadFromStream": func(t *testing.T, b *GridFSBucket, opts ...options.Lister[options.GridFSUploadOptions]) error {
		_, err := b.UploadFromStream(t.Context(), "f", strings.NewReader("text"), opts...)
		return err
	},
	"UploadFromStreamWithID": func(t *testing.T, b *GridFSBucket, opts ...options.Lister[options.GridFSUploadOptions]) error {
		return b.UploadFromStreamWithID(t.Context(), testUUID, "f", strings.NewReader("text"), opts...)
	},
}

// The metadata of the files in a bucket of GridFS have the representation of the client.
func TestGridFS(t *testing.T) {
	for name, upload := range uploads {
		for want := range stored {
			s := &server{found: bson.D{{Key: "_id", Value: 1}}}
			client := connect(t, s, "mongodb://h/?uuidRepresentation="+want.String(),
				WithClientOptions(options.Client().SetBSONOptions(&options.BSONOptions{UseJSONStructTags: true})))
			bucket, err := GridFS(client.Database("d").GridFSBucket())
			if err != nil {
				t.Fatal(err)
			}
			type metadata struct {
				Owner any `json:"renamed"`
			}
			if err := upload(t, bucket, options.GridFSUpload().SetMetadata(metadata{testUUID})); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			// The BSON options of the client are ignored: the driver's own default name of the field is stored.
			wantStored(t, s.file(t).Lookup("metadata", "owner"), want)
			if err := upload(t, bucket); err != nil {
				t.Fatalf("%s without options: %v", name, err)
			}
			if rv := s.file(t).Lookup("metadata"); !rv.IsZero() {
				t.Errorf("%s without options: metadata is %v", name, rv)
			}
		}
	}
}

// file returns the document of the last file that was uploaded.
func (s *server) file(t *testing.T) bson.Raw {
	t.Helper()
	for _, insert := range s.sent("insert") {
		if insert.Lookup("insert").StringValue() == "fs.files" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.commands = nil
			return insert.Lookup("documents", "0").Document()
		}
	}
	t.Fatal("no file was uploaded")
	return nil
}

// A registry of the caller's is what the driver's own bucket would use.
func TestGridFSRegistryOfTheCaller(t *testing.T) {
	s := &server{found: bson.D{{Key: "_id", Value: 1}}}
	client := connect(t, s, "mongodb://h/?uuidRepresentation=standard")
	java, err := NewClientRegistry(uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	plain := client.Database("d").GridFSBucket()
	bucket, err := GridFS(plain)
	if err != nil {
		t.Fatal(err)
	}
	for name, reg := range map[string]*bson.Registry{"javaLegacy": java, "driver": bson.NewRegistry()} {
		opts := options.GridFSUpload().SetMetadata(bson.M{"owner": testUUID}).SetRegistry(reg)
		if _, err := plain.UploadFromStream(t.Context(), "f", strings.NewReader("x"), opts); err != nil {
			t.Fatal(err)
		}
		want := s.file(t).Lookup("metadata")
		for upload, f := range uploads {
			if err := f(t, bucket, opts); err != nil {
				t.Fatal(err)
			}
			if got := s.file(t).Lookup("metadata"); !got.Equal(want) {
				t.Errorf("%s, %s: got %v, want %v", name, upload, got, want)
			}
		}
	}
	unspecified, err := GridFS(connect(t, s, "mongodb://h/").Database("d").GridFSBucket())
	if err != nil {
		t.Fatal(err)
	}
	for upload, f := range uploads {
		if err := f(t, unspecified, options.GridFSUpload().SetMetadata(bson.M{"owner": testUUID})); err == nil {
			t.Errorf("%s: a UUID in metadata of an unspecified client is not an error", upload)
		}
	}
}

// GridFS of nothing, and of a database whose registry this library did not build, is an error.
func TestGridFSMistakes(t *testing.T) {
	if b, err := GridFS(nil); err == nil || b != nil {
		t.Errorf("nil: got %v, %v", b, err)
	}
	if b, err := GridFS(new(mongo.GridFSBucket)); err == nil || b != nil {
		t.Errorf("zero: got %v, %v", b, err)
	}
	// A client of mongo.Connect, and a database that was given a registry of the driver.
	foreign, err := mongo.Connect(options.Client().ApplyURI("mongodb://h/?uuidRepresentation=standard"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = foreign.Disconnect(context.Background()) })
	ours := connect(t, &server{}, "mongodb://h/?uuidRepresentation=standard")
	reg, err := NewClientRegistry(uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]*mongo.Database{
		"mongo.Connect": foreign.Database("d"), "set later": ours.Database("d", options.Database().SetRegistry(bson.NewRegistry())),
	} {
		b, err := GridFS(db.GridFSBucket())
		if !errors.Is(err, ErrForeignRegistry) || b != nil || !strings.Contains(err.Error(), "clientopt.Connect") || strings.Count(err.Error(), "clientopt: ") != 1 {
			t.Errorf("%s: got %v, %v", name, b, err)
		}
	}
	if _, err := GridFS(foreign.Database("d", options.Database().SetRegistry(reg)).GridFSBucket()); err != nil {
		t.Errorf("a database with a registry of this library: %v", err)
	}
}

// Package gridfs has UUIDs in the metadata of files. // want package:`driver: `
package gridfs

import (
	"context"
	"io"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/clientopt"
)

func upload(ctx context.Context, db *mongo.Database, u uuid.UUID, file io.Reader) error {
	bucket := db.GridFSBucket()
	opts := options.GridFSUpload().SetMetadata(bson.M{"owner": u}) // want `the metadata of GridFS do not use the registry of the client, and the value holds a UUID: use clientopt.GridFS`
	_, err := bucket.UploadFromStream(ctx, "name", file, opts)
	_, err = bucket.OpenUploadStream(ctx, "name", options.GridFSUpload().SetMetadata(bson.M{"owner": u})) // want `use clientopt.GridFS`
	_, err = bucket.OpenUploadStream(ctx, "name", metadata(u))
	later := options.GridFSUpload()
	later.SetMetadata(bson.M{"owner": u}) // want `use clientopt.GridFS`
	err = bucket.UploadFromStreamWithID(ctx, u, "name", file, later)
	return err
}

func metadata(u uuid.UUID) *options.GridFSUploadOptionsBuilder {
	return options.GridFSUpload().SetMetadata(bson.D{{Key: "owner", Value: u}}) // want `use clientopt.GridFS`
}

// The documented use.
func right(ctx context.Context, client *mongo.Client, u uuid.UUID, file io.Reader) error {
	bucket, err := clientopt.GridFS(client.Database("app").GridFSBucket())
	if err != nil {
		return err
	}
	_, err = bucket.UploadFromStream(ctx, "name", file, options.GridFSUpload().SetMetadata(bson.M{"owner": u}))
	opts := options.GridFSUpload().SetMetadata(bson.M{"owner": u})
	_, err = bucket.OpenUploadStream(ctx, "name", opts)
	_, err = bucket.OpenUploadStreamWithID(ctx, u, "name", options.GridFSUpload().SetChunkSizeBytes(3).SetMetadata(bson.M{"owner": u}))
	list := []options.Lister[options.GridFSUploadOptions]{options.GridFSUpload().SetMetadata(bson.M{"owner": u})}
	list = append(list, options.GridFSUpload().SetMetadata(bson.M{"owner": u}))
	return bucket.UploadFromStreamWithID(ctx, u, "name", file, list...)
}

type files struct {
	bucket *clientopt.GridFSBucket
	opts   *options.GridFSUploadOptionsBuilder
}

func (f *files) save(ctx context.Context, u uuid.UUID) error {
	f.opts = options.GridFSUpload()
	f.opts.SetMetadata(bson.M{"owner": u})
	_, err := f.bucket.UploadFromStream(ctx, "name", strings.NewReader(""), f.opts, owned(u))
	return err
}

func owned(u uuid.UUID) *options.GridFSUploadOptionsBuilder {
	opts := options.GridFSUpload().SetMetadata(bson.D{{Key: "owner", Value: u}})
	return opts
}

type bucket interface {
	UploadFromStream(context.Context, string, io.Reader, ...options.Lister[options.GridFSUploadOptions]) (bson.ObjectID, error)
}

// A bucket that the package does not show.
func given(ctx context.Context, b bucket, u uuid.UUID) {
	b.UploadFromStream(ctx, "name", nil, options.GridFSUpload().SetMetadata(bson.M{"owner": u}))
}

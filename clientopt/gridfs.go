package clientopt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/internal/built"
)

// A GridFSBucket is the driver's bucket whose uploads encode their metadata with the registry of the bucket's collections.
// The driver's own uploads use a default registry, which stores a UUID in metadata as binary subtype 0, whatever the client
// is set to. The methods that the driver's bucket has beside the uploads are unchanged.
//
// A registry that a caller sets by SetRegistry wins. The driver encodes metadata without the BSON options of the client,
// and so does a GridFSBucket.
//
// A GridFSBucket is used as the driver's: not for two uploads at one time.
type GridFSBucket struct {
	*mongo.GridFSBucket
	reg *bson.Registry
}

// GridFS returns bucket with uploads that use the registry of its collections:
//
//	bucket, err := clientopt.GridFS(client.Database("app").GridFSBucket())
//	id, err := bucket.UploadFromStream(ctx, "name", file, options.GridFSUpload().SetMetadata(bson.M{"owner": u}))
//
// A nil bucket is an error, and it is [ErrForeignRegistry] if this library did not build the registry: uploads would store
// UUIDs as the driver's own bucket does. The other errors are those of [CollectionCodec].
func GridFS(bucket *mongo.GridFSBucket) (*GridFSBucket, error) {
	if bucket == nil {
		return nil, errors.New("clientopt: the bucket is nil")
	}
	reg, _, err := CollectionCodec(bucket.GetFilesCollection())
	if err != nil {
		return nil, err
	}
	if built.Of(reg) == nil {
		return nil, fmt.Errorf("clientopt: %w of the bucket, and what it does with UUIDs in metadata is not known: take the bucket from a "+
			"database of a client of clientopt.Connect, or give the database the registry of clientopt.NewClientRegistry", ErrForeignRegistry)
	}
	return &GridFSBucket{bucket, reg}, nil
}

// OpenUploadStream is the driver's OpenUploadStream, with the registry for the metadata.
func (b *GridFSBucket) OpenUploadStream(
	ctx context.Context, filename string, opts ...options.Lister[options.GridFSUploadOptions],
) (*mongo.GridFSUploadStream, error) {
	return b.GridFSBucket.OpenUploadStream(ctx, filename, b.with(opts)...)
}

// OpenUploadStreamWithID is the driver's OpenUploadStreamWithID, with the registry for the metadata.
func (b *GridFSBucket) OpenUploadStreamWithID(
	ctx context.Context, fileID any, filename string, opts ...options.Lister[options.GridFSUploadOptions],
) (*mongo.GridFSUploadStream, error) {
	return b.GridFSBucket.OpenUploadStreamWithID(ctx, fileID, filename, b.with(opts)...)
}

// UploadFromStream is the driver's UploadFromStream, with the registry for the metadata.
func (b *GridFSBucket) UploadFromStream(
	ctx context.Context, filename string, source io.Reader, opts ...options.Lister[options.GridFSUploadOptions],
) (bson.ObjectID, error) {
	return b.GridFSBucket.UploadFromStream(ctx, filename, source, b.with(opts)...)
}

// UploadFromStreamWithID is the driver's UploadFromStreamWithID, with the registry for the metadata.
func (b *GridFSBucket) UploadFromStreamWithID(
	ctx context.Context, fileID any, filename string, source io.Reader,
	opts ...options.Lister[options.GridFSUploadOptions],
) error {
	return b.GridFSBucket.UploadFromStreamWithID(ctx, fileID, filename, source, b.with(opts)...)
}

// with returns opts and an option that sets the registry if the caller did not.
func (b *GridFSBucket) with(opts []options.Lister[options.GridFSUploadOptions]) []options.Lister[options.GridFSUploadOptions] {
	return append(slices.Clone(opts), uploadOption(func(args *options.GridFSUploadOptions) error {
		if args.Registry == nil || args.Registry == uploadDefault() {
			args.Registry = b.reg
		}
		return nil
	}))
}

type uploadOption func(*options.GridFSUploadOptions) error

func (o uploadOption) List() []func(*options.GridFSUploadOptions) error {
	return []func(*options.GridFSUploadOptions) error{o}
}

// uploadDefault returns the registry that options.GridFSUpload sets before a caller sets anything, nil if it sets none.
var uploadDefault = sync.OnceValue(func() *bson.Registry {
	var args options.GridFSUploadOptions
	for _, set := range options.GridFSUpload().List() {
		_ = set(&args)
	}
	return args.Registry
})

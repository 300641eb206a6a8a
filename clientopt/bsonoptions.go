package clientopt

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
)

// CodecOptions returns bsonOpts as options of package bsoncodec, so that [bsoncodec.Marshal] and
// [bsoncodec.Unmarshal] write and read what a client with these BSONOptions does. Nil gives no
// options.
func CodecOptions(bsonOpts *options.BSONOptions) bsoncodec.Options {
	if bsonOpts == nil {
		return bsoncodec.Options{}
	}
	return bsoncodec.Options{
		UseJSONStructTags:       bsonOpts.UseJSONStructTags,
		ErrorOnInlineDuplicates: bsonOpts.ErrorOnInlineDuplicates,
		IntMinSize:              bsonOpts.IntMinSize,
		NilMapAsEmpty:           bsonOpts.NilMapAsEmpty,
		NilSliceAsEmpty:         bsonOpts.NilSliceAsEmpty,
		NilByteSliceAsEmpty:     bsonOpts.NilByteSliceAsEmpty,
		OmitZeroStruct:          bsonOpts.OmitZeroStruct,
		OmitEmpty:               bsonOpts.OmitEmpty,
		StringifyMapKeysWithFmt: bsonOpts.StringifyMapKeysWithFmt,
		AllowTruncatingDoubles:  bsonOpts.AllowTruncatingDoubles,
		BinaryAsSlice:           bsonOpts.BinaryAsSlice,
		DefaultDocumentM:        bsonOpts.DefaultDocumentM,
		DefaultDocumentMap:      bsonOpts.DefaultDocumentMap,
		ObjectIDAsHexString:     bsonOpts.ObjectIDAsHexString,
		UseLocalTimeZone:        bsonOpts.UseLocalTimeZone,
		ZeroMaps:                bsonOpts.ZeroMaps,
		ZeroStructs:             bsonOpts.ZeroStructs,
	}
}

// CollectionCodec returns the registry and the encoding options that coll encodes documents with.
// It sends nothing. The options know encoding and not decoding; [CursorCodec] and
// [bsoncodec.Options.Complete] add that. Errors are those of [bsoncodec.ProbeEncode]; a nil coll is
// an error.
func CollectionCodec(coll *mongo.Collection) (*bson.Registry, bsoncodec.Options, error) {
	if coll == nil {
		return nil, bsoncodec.Options{}, errors.New("clientopt: the collection is nil")
	}
	return bsoncodec.ProbeEncode(func(v any) error {
		_, err := coll.InsertOne(context.Background(), v)
		return err
	})
}

// CursorCodec returns the registry and the decoding options that cursor decodes documents with. It
// asks no server, and the cursor stays where it is. The options know decoding and not encoding;
// [CollectionCodec] and [bsoncodec.Options.Complete] add that. Errors are those of
// [bsoncodec.ProbeDecode]; a nil cursor is an error.
//
// What the options are for is to decode documents from memory, which is faster than the Decode
// method of the cursor:
//
//	reg, opts, err := clientopt.CursorCodec(cursor)
//	…
//	for cursor.Next(ctx) {
//		var u User
//		err := bsoncodec.Unmarshal(reg, cursor.Current, &u, opts)
//		…
//	}
func CursorCodec(cursor *mongo.Cursor) (*bson.Registry, bsoncodec.Options, error) {
	if cursor == nil {
		return nil, bsoncodec.Options{}, errors.New("clientopt: the cursor is nil")
	}
	return bsoncodec.ProbeDecode(cursor.Decode)
}

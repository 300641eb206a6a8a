// Package inuse reads the registry and the BSON options of the driver's clients, databases, collections, cursors,
// single results and change streams, which the driver keeps in fields and tells nobody. It is above package bsoncodec.
package inuse

import (
	"reflect"
	"sync"
	"unsafe"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
)

// A Holder is a type of the driver that has a registry and BSON options.
type Holder interface {
	mongo.Client | mongo.Database | mongo.Collection | mongo.Cursor | mongo.SingleResult | mongo.ChangeStream
}

// Of returns the registry and the options that h encodes and decodes with. It reads memory alone. ok is false if h is nil
// or has no registry, and if a version of the driver that is not known keeps them elsewhere or has set an option that this
// library does not know.
func Of[H Holder](h *H) (reg *bson.Registry, opts bsoncodec.Options, ok bool) {
	if h == nil {
		return nil, opts, false
	}
	at := placesOf[H]()
	if !at.known {
		return nil, opts, false
	}
	reg = *(**bson.Registry)(unsafe.Add(unsafe.Pointer(h), at.registry))
	if reg == nil {
		return nil, opts, false
	}
	bsonOpts := *(**options.BSONOptions)(unsafe.Add(unsafe.Pointer(h), at.options))
	opts, ok = Options(bsonOpts)
	return reg, opts, ok
}

// places are the offsets of the two fields in a struct of the driver.
type places struct {
	registry, options uintptr
	known             bool
}

// found is made when it is first needed, because looking for fields allocates.
var found = sync.OnceValue(func() (f struct {
	client, database, collection, cursor, singleResult, changeStream places

	unknown []int // the indices of the fields of BSONOptions that package bsoncodec does not have
},
) {
	f.client, f.database = find[mongo.Client]("registry"), find[mongo.Database]("registry")
	f.collection, f.cursor = find[mongo.Collection]("registry"), find[mongo.Cursor]("registry")
	f.singleResult, f.changeStream = find[mongo.SingleResult]("reg"), find[mongo.ChangeStream]("registry")
	ours, theirs := reflect.TypeFor[bsoncodec.Options](), reflect.TypeFor[options.BSONOptions]()
	for i := range theirs.NumField() {
		field, ok := ours.FieldByName(theirs.Field(i).Name)
		if !ok || field.Type != theirs.Field(i).Type {
			f.unknown = append(f.unknown, i)
		}
	}
	return f
})

func placesOf[H Holder]() places {
	switch any((*H)(nil)).(type) {
	case *mongo.Client:
		return found().client
	case *mongo.Database:
		return found().database
	case *mongo.Collection:
		return found().collection
	case *mongo.Cursor:
		return found().cursor
	case *mongo.SingleResult:
		return found().singleResult
	default:
		return found().changeStream
	}
}

func find[H Holder](registry string) places {
	t := reflect.TypeFor[H]()
	reg, hasRegistry := t.FieldByName(registry)
	opts, hasOptions := t.FieldByName("bsonOpts")
	if !hasRegistry || !hasOptions || len(reg.Index) != 1 || len(opts.Index) != 1 ||
		reg.Type != reflect.TypeFor[*bson.Registry]() || opts.Type != reflect.TypeFor[*options.BSONOptions]() {
		return places{}
	}
	return places{reg.Offset, opts.Offset, true}
}

// Options returns bsonOpts as options of package bsoncodec. Nil gives none. ok is false if an option is set that package
// bsoncodec does not have.
func Options(bsonOpts *options.BSONOptions) (opts bsoncodec.Options, ok bool) {
	if bsonOpts == nil {
		return bsoncodec.Options{}, true
	}
	ok = true
	for _, i := range found().unknown {
		ok = ok && reflect.ValueOf(bsonOpts).Elem().Field(i).IsZero()
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
	}, ok
}

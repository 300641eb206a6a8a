package convert

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// pages reads a collection in the order of _id, a page at a time, each with a query of its own: no cursor has to live
// for as long as the work on a page takes, and reading begins anywhere again. It is not safe for concurrent use.
type pages struct {
	coll       *mongo.Collection
	projection bson.D
	size       int64
	octets     int           // after how many a page ends, however few its documents are then; maxPage if 0
	after      bson.RawValue // the last _id that was read; zero at the beginning
	end        bool
	plain      bool // the server doesn't know the unusual types
}

const maxPage = 32 << 20

// next returns the next documents, none at the end.
func (p *pages) next(ctx context.Context) ([]bson.Raw, error) {
	if p.end {
		return nil, nil
	}
	opts := options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(p.size).SetBatchSize(int32(min(p.size, math.MaxInt32)))
	if p.projection != nil {
		opts.SetProjection(p.projection)
	}
	cur, err := p.find(ctx, nil, opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	docs := make([]bson.Raw, 0, p.size)
	left := cmp.Or(p.octets, maxPage)
	for left > 0 && cur.Next(ctx) {
		docs = append(docs, slices.Clone(cur.Current))
		left -= len(cur.Current)
	}
	if err := cur.Err(); err != nil {
		return nil, err
	}
	p.end = left > 0 && int64(len(docs)) < p.size
	if len(docs) > 0 {
		id := docs[len(docs)-1].Lookup("_id")
		p.after = bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}
	}
	return docs, nil
}

// find finds what is behind the last _id that was read, and fits the filter too.
func (p *pages) find(ctx context.Context, filter bson.D, opts *options.FindOptionsBuilder) (*mongo.Cursor, error) {
	cur, err := p.coll.Find(ctx, append(after(p.after, p.plain), filter...), opts)
	var ce mongo.CommandError
	if errors.As(err, &ce) && ce.Code == 2 && !p.plain { // BadValue: what it cannot ask for, it cannot hold
		p.plain = true
		cur, err = p.coll.Find(ctx, append(after(p.after, p.plain), filter...), opts)
	}
	return cur, err
}

// retain deletes from entries, by key, those of documents that are not to be read any more.
func (p *pages) retain(ctx context.Context, entries map[string]Entry) error {
	var ids []bson.RawValue
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	for chunk := range slices.Chunk(ids, batchSize) {
		filter := bson.D{{Key: "$and", Value: bson.A{byIDs(chunk)}}} // after names _id already
		cur, err := p.find(ctx, filter, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}))
		if err != nil {
			return err
		}
		var docs []bson.Raw
		if err := cur.All(ctx, &docs); err != nil {
			return err
		}
		there := make(map[string]bool, len(docs))
		for _, doc := range docs {
			there[key(doc.Lookup("_id"))] = true
		}
		for _, id := range chunk {
			if !there[key(id)] {
				delete(entries, key(id))
			}
		}
	}
	return nil
}

// sortOrder are the BSON types in the order in which MongoDB sorts them; types in one group compare by value.
var sortOrder = [][]bson.Type{
	{bson.TypeMinKey}, {bson.TypeUndefined, bson.TypeNull}, {bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128},
	{bson.TypeString, bson.TypeSymbol}, {bson.TypeEmbeddedDocument}, {bson.TypeArray}, {bson.TypeBinary}, {bson.TypeObjectID},
	{bson.TypeBoolean}, {bson.TypeDateTime}, {bson.TypeTimestamp}, {bson.TypeRegex}, {bson.TypeDBPointer}, {bson.TypeJavaScript},
	{bson.TypeCodeWithScope}, {bson.TypeMaxKey},
}

// typeNames are what $type calls them; unusual are those that some servers don't know. An array is no _id, and a server
// that is asked for arrays looks through the whole index for each page.
var (
	typeNames = map[bson.Type]string{
		bson.TypeDouble: "double", bson.TypeString: "string", bson.TypeEmbeddedDocument: "object",
		bson.TypeBinary: "binData", bson.TypeObjectID: "objectId", bson.TypeBoolean: "bool", bson.TypeDateTime: "date",
		bson.TypeNull: "null", bson.TypeRegex: "regex", bson.TypeInt32: "int", bson.TypeTimestamp: "timestamp", bson.TypeInt64: "long",
	}
	unusual = map[bson.Type]string{
		bson.TypeUndefined: "undefined", bson.TypeDBPointer: "dbPointer", bson.TypeJavaScript: "javascript", bson.TypeSymbol: "symbol",
		bson.TypeCodeWithScope: "javascriptWithScope", bson.TypeDecimal128: "decimal", bson.TypeMinKey: "minKey", bson.TypeMaxKey: "maxKey",
	}
)

// after returns a filter for the documents behind id in the order of _id. A comparison alone finds values of id's own
// type only.
func after(id bson.RawValue, plain bool) bson.D {
	if id.Type == 0 {
		return bson.D{}
	}
	group := slices.IndexFunc(sortOrder, func(g []bson.Type) bool { return slices.Contains(g, id.Type) })
	var later bson.A
	for _, g := range sortOrder[group+1:] {
		for _, t := range g {
			if name, ok := typeNames[t]; ok {
				later = append(later, name)
			} else if name, ok := unusual[t]; ok && !plain {
				later = append(later, name)
			}
		}
	}
	behind := bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: id}}}}
	if isNaN(id) { // sorts before all numbers, and nothing is greater
		behind = bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: math.Inf(-1)}}}}
	}
	if len(later) == 0 {
		return behind
	}
	return bson.D{{Key: "$or", Value: bson.A{behind, bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: later}}}}}}}
}

func isNaN(v bson.RawValue) bool {
	if d, ok := v.DoubleOK(); ok {
		return math.IsNaN(d)
	}
	d, ok := v.Decimal128OK()
	return ok && d.IsNaN()
}

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
	types      bool // no more is behind after that is of its type
	plain      bool // the server doesn't know the unusual types
}

const maxPage = 32 << 20

// next returns the next documents, none at the end. What is behind an _id of its own type and what is of the types that
// follow are two queries: of a clustered collection, a server reads everything from the beginning for one query for both.
func (p *pages) next(ctx context.Context) ([]bson.Raw, error) {
	for !p.end {
		filter := behind(p.after)
		if p.types {
			if filter = ofLaterTypes(p.after, p.plain); filter == nil {
				p.end = true
				break
			}
		}
		docs, whole, err := p.page(ctx, filter)
		if p.types && p.unknown(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p.end = whole && (p.types || p.after.Type == 0)
		p.types = whole
		if len(docs) > 0 {
			id := docs[len(docs)-1].Lookup("_id")
			p.after = bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}
			return docs, nil
		}
	}
	return nil, nil
}

// unknown reports whether the server refused a query for the unusual types, and has later ones ask for the usual ones only:
// what it cannot ask for, it cannot hold.
func (p *pages) unknown(err error) bool {
	var ce mongo.CommandError
	const badValue = 2
	if !errors.As(err, &ce) || ce.Code != badValue || p.plain {
		return false
	}
	p.plain = true
	return true
}

// page returns the first documents that fit the filter, and whether these are all.
func (p *pages) page(ctx context.Context, filter bson.D) (docs []bson.Raw, whole bool, err error) {
	opts := options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(p.size).SetBatchSize(int32(min(p.size, math.MaxInt32)))
	if p.projection != nil {
		opts.SetProjection(p.projection)
	}
	cur, err := p.coll.Find(ctx, filter, opts)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	docs = make([]bson.Raw, 0, p.size)
	left := cmp.Or(p.octets, maxPage)
	for left > 0 && cur.Next(ctx) {
		docs = append(docs, slices.Clone(cur.Current))
		left -= len(cur.Current)
	}
	return docs, left > 0 && int64(len(docs)) < p.size, cur.Err()
}

// find finds what is behind the last _id that was read, and fits the filter too.
func (p *pages) find(ctx context.Context, filter bson.D, opts *options.FindOptionsBuilder) (*mongo.Cursor, error) {
	cur, err := p.coll.Find(ctx, append(after(p.after, p.plain), filter...), opts)
	if p.unknown(err) {
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
	later := ofLaterTypes(id, plain)
	if later == nil {
		return behind(id)
	}
	return bson.D{{Key: "$or", Value: bson.A{behind(id), later}}}
}

// behind returns a filter for the _ids of id's own type that are greater, for all if id is zero.
func behind(id bson.RawValue) bson.D {
	switch {
	case id.Type == 0:
		return bson.D{}
	case isNaN(id): // sorts before all numbers, and nothing is greater
		return bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: math.Inf(-1)}}}}
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: id}}}}
}

// ofLaterTypes returns a filter for the _ids of the types that sort after id's, nil if none do or id is zero.
func ofLaterTypes(id bson.RawValue, plain bool) bson.D {
	if id.Type == 0 {
		return nil
	}
	var later bson.A
	group := slices.IndexFunc(sortOrder, func(g []bson.Type) bool { return slices.Contains(g, id.Type) })
	for _, g := range sortOrder[group+1:] {
		for _, t := range g {
			if name, ok := typeNames[t]; ok {
				later = append(later, name)
			} else if name, ok := unusual[t]; ok && !plain {
				later = append(later, name)
			}
		}
	}
	if len(later) == 0 {
		return nil
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: later}}}}
}

func isNaN(v bson.RawValue) bool {
	if d, ok := v.DoubleOK(); ok {
		return math.IsNaN(d)
	}
	d, ok := v.Decimal128OK()
	return ok && d.IsNaN()
}

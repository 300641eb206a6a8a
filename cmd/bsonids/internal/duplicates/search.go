package duplicates

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// search is the search in one collection.
type search struct {
	Collection
	of      *Finder
	indexes []*index
	nulls   bool // a conversion may make null, or take a field away

	ids spill.Values // of the documents with keys
	// keys has the hashes of the keys after the conversion, each with a number. documents has those of the _ids that would get
	// a key of another document, each with the number of the index.
	keys, documents *spill.Sorter

	was, is    map[[16]byte]bool // keys of a document
	key, after []byte
}

// The number of a key has, from its highest bit: whether the document has the key only after the conversion, the number of the
// index, and the place of the _id. In the order of the numbers, a document that has the key already comes first.
const (
	made       = 1 << 63
	placeBits  = 57
	maxIndexes = 64 // and no collection has more
)

func indexOf(number uint64) int   { return int(number &^ made >> placeBits) }
func placeOf(number uint64) int64 { return int64(number & (1<<placeBits - 1)) }

// read reads the documents of each part, and then those of none, which may have what a part makes.
func (s *search) read(ctx context.Context) error {
	s.was, s.is = make(map[[16]byte]bool), make(map[[16]byte]bool)
	total, err := patience.Ask(ctx, s.of.Patience, func() (int64, error) { return s.EstimatedDocumentCount(ctx) })
	if err != nil {
		return err
	}
	bar := s.of.Progress(total, "comparing", s.Database().Name()+"."+s.Name())
	defer bar.Done()
	var queries bson.A
	for _, p := range s.Parts {
		s.nulls = s.nulls || slices.ContainsFunc(p.Conversion, func(pair rule.Pair) bool { return pair.From.Form == kinds.Struct })
		if len(p.Query) > 0 {
			queries = append(queries, p.Query)
		}
	}
	for _, p := range s.Parts {
		if err := s.part(ctx, p, bar); err != nil {
			return err
		}
	}
	if len(queries) < len(s.Parts) {
		return nil
	}
	none := Part{}
	none.Query = bson.D{{Key: "$nor", Value: queries}}
	return s.part(ctx, none, bar)
}

// part reads the documents of a part.
func (s *search) part(ctx context.Context, p Part, bar terminal.Progress) error {
	const size = 1000
	pages := &documents.Pages{Collection: s.Collection.Collection, Projection: s.projection(p), Filter: p.Query, Size: size, Ahead: true}
	r := rule.NewRewriter(p.Conversion)
	return pages.Each(ctx, s.of.Patience, func(docs []bson.Raw) error {
		bar.Add(len(docs))
		for _, doc := range docs {
			s.after = append(s.after[:0], doc...)
			after := s.after
			if out, _, _, err := r.Document(after); err == nil {
				after = out
			} else { // it cannot be walked, and is left
				after = doc
			}
			if err := s.document(doc, after); err != nil {
				return err
			}
		}
		return nil
	})
}

// projection returns a projection with the fields of the indexes and of the part, or nil if whole documents must be read.
func (s *search) projection(p Part) bson.D {
	d := p.Conversion.Projection()
	if d == nil && len(p.Conversion) > 0 {
		return nil
	}
	for _, i := range s.indexes {
		if top := i.paths[0][0]; !slices.ContainsFunc(d, func(e bson.E) bool { return e.Key == top }) {
			d = append(d, bson.E{Key: top, Value: 1})
		}
	}
	return d
}

// document adds the keys that a document has after the conversion.
func (s *search) document(doc, after bson.Raw) error {
	place := int64(-1)
	for _, i := range s.indexes {
		clear(s.was)
		clear(s.is)
		s.hashes(i, doc, s.was)
		s.hashes(i, after, s.is)
		for h := range s.is {
			if place < 0 {
				var err error
				id := documents.ID(doc)
				if place, err = s.ids.Add(byte(id.Type), id.Value); err != nil {
					return err
				}
			}
			number := i.number<<placeBits | uint64(place)
			if !s.was[h] {
				number |= made
			}
			if err := s.keys.Add(spill.Of(h, number)); err != nil {
				return err
			}
		}
	}
	return nil
}

// id returns the _id at a place.
func (s *search) id(place int64) (bson.RawValue, error) {
	kind, value, err := s.ids.At(place)
	return bson.RawValue{Type: bson.Type(kind), Value: value}, err
}

// hashes adds the hashes of the keys of a document that a conversion may make.
func (s *search) hashes(i *index, doc bson.Raw, to map[[16]byte]bool) {
	i.keys(doc, func(v bson.RawValue) {
		if s.mayMake(v) {
			s.key = documents.AppendEqual(append(s.key[:0], byte(i.number)), v)
			to[hash(s.key)] = true
		}
	})
}

// mayMake reports whether a conversion may make a key.
func (s *search) mayMake(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeNull:
		return s.nulls
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return true
	}
	subtype, _, ok := v.BinaryOK()
	return ok && subtype == bson.TypeBinaryUUID
}

// pair calls f for each document that would get a key of the index that another document has, or gets itself.
func (s *search) pair(f func(index int, id, other bson.RawValue) error) error {
	var first spill.Record // of the key
	var other, last bson.RawValue
	begun := false
	return s.keys.Each(func(r spill.Record) (err error) {
		if !begun || r[0] != first[0] || r[1] != first[1] {
			begun, first, other, last = true, r, bson.RawValue{}, bson.RawValue{}
			return nil
		}
		if r[2]&made == 0 {
			return nil
		}
		if other.Type == 0 {
			if other, err = s.id(placeOf(first[2])); err != nil {
				return err
			}
		}
		id, err := s.id(placeOf(r[2]))
		if err != nil || id.Equal(other) || id.Equal(last) { // a document is read by each part that selects it
			return err
		}
		last = id
		n := indexOf(r[2])
		if err := s.documents.Add(spill.Of(hash(append([]byte{byte(n), byte(id.Type)}, id.Value...)), uint64(n))); err != nil {
			return err
		}
		return f(n, id, other)
	})
}

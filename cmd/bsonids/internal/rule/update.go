package rule

import (
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Model returns an update that finds its document by _id and by the old value of each change. The
// update therefore changes nothing if another program changed a value first. A query also matches
// an array that has the old value as an element, so the filter excludes arrays:
//
//	{_id: {$eq: …}, "items.0.id": {$eq: <old>, $not: {$type: "array"}}, …}
//	{$set: {"items.0.id": <new>, …}}
//
// The whole shard key is compared as it is, without a condition of a field in it, which a router would not take for an
// equality. It has no arrays. The conditions of the array and, unless it is zero, must hold too.
//
// Both are written as BSON directly, because encoding one update per document would dominate the
// cost of a conversion.
func (p Edits) Model(and bson.RawValue) *mongo.UpdateOneModel {
	filter := make([]byte, 0, 64+len(p.ID.Value)+len(p.Changes)*96)
	filter, start := begin(filter)
	filter, eq := beginElement(filter, "_id")
	filter = appendValue(filter, "$eq", p.ID)
	filter = end(filter, eq)
	for _, e := range p.Key {
		var cond int
		filter, cond = beginElement(filter, e.Key)
		filter = appendValue(filter, "$eq", e.Value.(bson.RawValue))
		filter = end(filter, cond)
	}
	for _, ch := range p.Changes {
		if p.inKey(ch) { // whose value is above
			continue
		}
		var cond, not int
		filter, cond = beginElement(filter, ch.Path)
		filter = appendStored(filter, "$eq", ch.Old)
		if ch.Old == Null { // which a field that does not exist matches, too
			filter = append(appendKey(filter, bson.TypeBoolean, "$exists"), 1)
		}
		filter, not = beginElement(filter, "$not")
		filter = appendString(filter, "$type", "array")
		filter = end(filter, not)
		filter = end(filter, cond)
	}
	if len(and.Value) > 0 {
		filter = appendValue(filter, "$and", and)
	}
	filter = end(filter, start)

	update := make([]byte, 0, 32+len(p.Changes)*56)
	update, start = begin(update)
	update, set := beginElement(update, "$set")
	for _, ch := range p.Changes {
		update = appendStored(update, ch.Path, ch.New)
	}
	update = end(update, set)
	update = end(update, start)
	return mongo.NewUpdateOneModel().SetFilter(bson.Raw(filter)).SetUpdate(bson.Raw(update))
}

// Size returns the size in bytes of the filter and the update.
func (p Edits) Size() int {
	n := 36 + len(p.ID.Value) // without the changes
	for _, e := range p.Key {
		n += 16 + len(e.Key) + len(e.Value.(bson.RawValue).Value)
	}
	for _, ch := range p.Changes {
		n += 42 + 2*len(ch.Path) + ch.Old.size() + ch.New.size()
		if ch.Old == Null { // $exists
			n += 10
		}
	}
	return n
}

func begin(b []byte) ([]byte, int) { return append(b, make([]byte, 4)...), len(b) }

func beginElement(b []byte, key string) ([]byte, int) {
	return begin(appendKey(b, bson.TypeEmbeddedDocument, key))
}

// end completes the document that begins at start.
func end(b []byte, start int) []byte {
	b = append(b, 0)
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

func appendKey(b []byte, t bson.Type, key string) []byte {
	return append(append(append(b, byte(t)), key...), 0)
}

func appendValue(b []byte, key string, v bson.RawValue) []byte {
	return append(appendKey(b, v.Type, key), v.Value...)
}

func appendStored(b []byte, key string, v Value) []byte {
	if v.Other != "" {
		return append(appendKey(b, bson.Type(v.Other[0]), key), v.Other[1:]...)
	}
	b = append(appendKey(b, bson.TypeBinary, key), 16, 0, 0, 0, v.Subtype)
	return append(b, v.Octets[:]...)
}

func appendString(b []byte, key, s string) []byte {
	b = binary.LittleEndian.AppendUint32(appendKey(b, bson.TypeString, key), uint32(len(s)+1))
	return append(append(b, s...), 0)
}

package guard

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// probe is a document, and whether it has a value of the kind in the field.
type probe struct {
	doc   bson.D
	holds bool
}

// probes returns documents that show whether a server has the order of binary values that the
// condition needs, and applies the condition to arrays as MongoDB does.
func probes(f Field, k kinds.Kind) []probe {
	if k.Form == kinds.Text {
		return textProbes(f)
	}
	subtype := k.Subtype
	value := func(subtype byte, n int, b byte) bson.Binary {
		return bson.Binary{Subtype: subtype, Data: bytes.Repeat([]byte{b}, n)}
	}
	other := byte(bson.TypeBinaryUUID)
	if subtype == other {
		other = bson.TypeBinaryMD5
	}
	old, long, short := value(subtype, size, 'a'), value(subtype, size+1, 'a'), value(subtype, size-1, 'a')
	return probed(f, []single{
		{old, true}, {value(subtype, size, 0), true}, {value(subtype, size, 0xff), true},
		{value(other, size, 'a'), false}, {value(other, size, 0), false}, {value(other, size, 0xff), false},
		{value(bson.TypeBinaryUserDefined, size, 'a'), false},
		{long, false}, {short, false}, {"a", false}, {nil, false},
		{bson.A{short, old}, true}, {bson.A{short, long}, false}, {bson.A{long, short, value(other, size, 'a')}, false}, {bson.A{}, false},
	})
}

// single is a value of a field, and whether it is one that the condition is for.
type single struct {
	v     any
	holds bool
}

// textProbes returns documents that show whether a server applies the condition for text as MongoDB
// does.
func textProbes(f Field) []probe {
	const text, digits = "9f2c8a52-6d1e-4B60-9a57-0f6a1d2e3c4b", "9f2c8a526d1e4B609a570f6a1d2e3c4b"
	u := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: bytes.Repeat([]byte{'a'}, size)}
	return probed(f, []single{
		{text, true}, {digits, true}, {"{" + text + "}", true}, {"urn:uuid:" + text, true}, {"URN:UUID:" + text, true},
		{text + "\n", false}, {" " + text, false}, {"x" + text, false}, {text + "}", false}, {"{" + text, false}, {digits + "0", false}, {digits[1:], false},
		{"g" + text[1:], false}, {"", false}, {u, false}, {nil, false}, {bson.Regex{Pattern: spellings}, false},
		{bson.A{"", text}, true}, {bson.A{u, ""}, false}, {bson.A{}, false},
	})
}

// probed returns documents that have the values in the field.
func probed(f Field, values []single) []probe {
	var all []probe
	for _, v := range values {
		doc := any(v.v)
		for i := len(f.names) - 1; i >= 0; i-- {
			doc = bson.D{{Key: f.names[i], Value: doc}}
		}
		all = append(all, probe{doc.(bson.D), v.holds})
		if len(f.names) > 1 {
			top := doc.(bson.D)[0]
			all = append(all, probe{bson.D{{Key: top.Key, Value: bson.A{bson.D{}, top.Value}}}, v.holds})
		}
	}
	return all
}

// probeKey is a name that no field has.
const probeKey = "bsonids probe"

// Ordered reports whether the server applies the condition for the field as MongoDB does. It asks the
// server for documents that are part of the question, and writes nothing. The answer is true if the
// collection is empty.
func Ordered(ctx context.Context, coll *mongo.Collection, f Field, k kinds.Kind) (bool, error) {
	ask := probes(f, k)
	var docs bson.A
	for i, p := range ask {
		docs = append(docs, append(bson.D{{Key: probeKey, Value: int32(i)}}, p.doc...))
	}
	cur, err := coll.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$limit", Value: 1}},
		{{Key: "$project", Value: bson.D{{Key: "_id", Value: 0}, {Key: "probe", Value: bson.D{{Key: "$literal", Value: docs}}}}}},
		{{Key: "$unwind", Value: "$probe"}},
		{{Key: "$replaceRoot", Value: bson.D{{Key: "newRoot", Value: "$probe"}}}},
		{{Key: "$facet", Value: bson.D{
			{Key: "all", Value: bson.A{bson.D{{Key: "$count", Value: "n"}}}},
			{Key: "old", Value: bson.A{bson.D{{Key: "$match", Value: f.holds(k)}}, bson.D{{Key: "$project", Value: bson.D{{Key: probeKey, Value: 1}}}}}},
		}}},
	})
	if err != nil {
		return false, err
	}
	var answer []struct {
		All []bson.Raw `bson:"all"`
		Old []bson.Raw `bson:"old"`
	}
	if err := cur.All(ctx, &answer); err != nil {
		return false, err
	}
	if len(answer) == 0 || len(answer[0].All) == 0 {
		return true, nil
	}
	holds := make(map[int32]bool)
	for _, doc := range answer[0].Old {
		if i, ok := doc.Lookup(probeKey).Int32OK(); ok {
			holds[i] = true
		}
	}
	for i, p := range ask {
		if holds[int32(i)] != p.holds {
			return false, nil
		}
	}
	return true, nil
}

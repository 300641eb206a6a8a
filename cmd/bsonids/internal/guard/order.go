package guard

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// probe is a document, and whether it has a value that is refused.
type probe struct {
	doc   bson.D
	holds bool
}

// probes returns documents that show whether a server has the order of binary values and the regular expressions that
// the condition needs, and applies the condition to arrays as MongoDB does.
func probes(r record.Refused) (all []probe) {
	add := func(holds bool, values ...any) {
		for _, v := range values {
			names := strings.Split(r.Path, ".")
			for _, name := range slices.Backward(names) {
				v = bson.D{{Key: name, Value: v}}
			}
			doc := v.(bson.D)
			all = append(all, probe{doc, holds})
			if len(names) > 1 {
				all = append(all, probe{bson.D{{Key: names[0], Value: bson.A{bson.D{}, doc[0].Value}}}, holds})
			}
		}
	}
	value := func(subtype byte, n int, b byte) bson.Binary {
		return bson.Binary{Subtype: subtype, Data: bytes.Repeat([]byte{b}, n)}
	}
	add(false, nil, "", "a", bson.A{})
	if r.IsText() {
		const text, digits = "9f2c8a52-6d1e-4B60-9a57-0f6a1d2e3c4b", "9f2c8a526d1e4B609a570f6a1d2e3c4b"
		u := value(bson.TypeBinaryUUID, size, 'a')
		add(true, text, digits, "{"+text+"}", "urn:uuid:"+text, "URN:UUID:"+text, bson.A{"", text})
		add(false, text+"\n", " "+text, "x"+text, text+"}", "{"+text, digits+"0", digits[1:], "g"+text[1:], u,
			bson.Regex{Pattern: spellings}, bson.A{u, ""})
		return all
	}
	other := byte(bson.TypeBinaryUUID)
	if r.Subtype == other {
		other = bson.TypeBinaryMD5
	}
	old, long, short := value(r.Subtype, size, 'a'), value(r.Subtype, size+1, 'a'), value(r.Subtype, size-1, 'a')
	add(true, old, value(r.Subtype, size, 0), value(r.Subtype, size, 0xff), bson.A{short, old})
	add(false, value(other, size, 'a'), value(other, size, 0), value(other, size, 0xff), value(bson.TypeBinaryUserDefined, size, 'a'),
		long, short, bson.A{short, long}, bson.A{long, short, value(other, size, 'a')})
	return all
}

// probeKey is a name that no field has.
const probeKey = "bsonids probe"

// Ordered reports whether the server applies the condition for values of a field as MongoDB does. It asks the
// server for documents that are part of the question, and writes nothing. The answer is true if the
// collection is empty.
func Ordered(ctx context.Context, coll *mongo.Collection, r record.Refused) (bool, error) {
	ask := probes(r)
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
			{Key: "old", Value: bson.A{bson.D{{Key: "$match", Value: holds(r)}}, bson.D{{Key: "$project", Value: bson.D{{Key: probeKey, Value: 1}}}}}},
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
	held := make(map[int32]bool)
	for _, doc := range answer[0].Old {
		if i, ok := doc.Lookup(probeKey).Int32OK(); ok {
			held[i] = true
		}
	}
	for i, p := range ask {
		if held[int32(i)] != p.holds {
			return false, nil
		}
	}
	return true, nil
}

package walk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// replaced returns v with every string replaced by the value of with.
func replaced(v any, with func(string) any) any {
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range v {
			out = append(out, bson.E{Key: e.Key, Value: replaced(e.Value, with)})
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, e := range v {
			out = append(out, replaced(e, with))
		}
		return out
	case string:
		return with(v)
	}
	return v
}

func anyValue(r *rand.Rand, depth int) any {
	n := r.IntN(6)
	switch {
	case n == 0 && depth > 0:
		list := bson.A{}
		for range r.IntN(4) {
			list = append(list, anyValue(r, depth-1))
		}
		return list
	case n <= 2 && depth > 0:
		doc := bson.D{}
		for range r.IntN(5) {
			doc = append(doc, bson.E{Key: string(rune('a' + r.IntN(3))), Value: anyValue(r, depth-1)})
		}
		return doc
	case n == 3:
		return r.Int32()
	}
	return string(make([]byte, r.IntN(40)))
}

// A document with edits is the one that the driver encodes with the new values.
func TestSplice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	values := []any{nil, "text", bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.D{{Key: "x", Value: int32(1)}}, bson.D{}}
	edited := 0
	for range 5000 {
		fields := bson.D{{Key: "v", Value: anyValue(r, 4)}, {Key: "w", Value: anyValue(r, 2)}}
		doc := marshal(t, fields)
		var with []any
		var edits []Edit
		err := Document(doc, func(_ *Path, l Leaf) error {
			if l.Type != bson.TypeString {
				return nil
			}
			if text, _ := l.Text(); len(text)%3 == 0 { // left as it is
				with = append(with, string(text))
				return nil
			}
			v := values[r.IntN(len(values))]
			raw := bson.Raw(marshal(t, bson.D{{Key: "v", Value: v}})).Lookup("v")
			with = append(with, v)
			edits = append(edits, Edit{l.Offset, raw.Type, raw.Value})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Splice(doc, edits)
		want := marshal(t, replaced(fields, func(string) any { v := with[0]; with = with[1:]; return v }))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v becomes %v, want %v, %v", bson.Raw(doc), bson.Raw(got), bson.Raw(want), err)
		}
		edited += len(edits)
	}
	if edited < 1000 {
		t.Errorf("only %d edits", edited)
	}
}

// An edit that is not at a value is an error, and no document is corrupted.
func TestSpliceNowhere(t *testing.T) {
	doc := marshal(t, everyType())
	for at := range len(doc) + 2 {
		value := []byte{1, 2, 3, 4}
		got, err := Splice(doc, []Edit{{at, bson.TypeInt32, value}})
		if err == nil {
			err = bson.Raw(got).Validate()
		} else if !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		} else {
			err = nil
		}
		if err != nil {
			t.Errorf("edit at %d: %v", at, err)
		}
	}
	for end := range doc {
		if _, err := Splice(doc[:end], nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes: %v", end, err)
		}
	}
}

package rule

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// A conversion names the pairs of which it was compiled.
func TestCompile(t *testing.T) {
	pairs := []kinds.Pair{
		{From: "csharpLegacy", Fields: []string{"a", "items.*"}},
		{From: "text", Fields: []string{"b"}},
		{From: "javaLegacy"},
	}
	c, err := Compile(pairs)
	if err != nil || !reflect.DeepEqual(c.Pairs(), pairs) {
		t.Errorf("%v, %v", c.Pairs(), err)
	}
	for name, tt := range map[string]struct {
		pair kinds.Pair
		err  error
		text string
	}{
		"unknown from":      {pair: kinds.Pair{From: "cobol"}, text: "cobol"},
		"invalid field":     {pair: kinds.Pair{From: "javaLegacy", Fields: []string{"a..b"}}, text: "a..b"},
		"text everywhere":   {pair: kinds.Pair{From: "text"}, text: "from text, the fields must be named"},
		"standard":          {pair: kinds.Pair{From: "standard"}, err: ErrStandard, text: "the values are standard already"},
		"the second of two": {pair: kinds.Pair{From: "cobol"}, text: "cobol"},
	} {
		c, err := Compile([]kinds.Pair{pairs[0], tt.pair})
		if err == nil || c != nil || tt.err != nil && !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}

// There is a decision for each pair.
func TestDecideEach(t *testing.T) {
	c, err := Compile([]kinds.Pair{{From: "csharpLegacy"}, {From: "javaLegacy", Fields: []string{"a"}}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		if err := c.Decide(make([]decide.Decision, n)); (err == nil) != (n == 2) {
			t.Errorf("%d decisions: %v", n, err)
		}
	}
}

// A pair is about the values of its kind in its fields, with positions, and knows the UUIDs of its kind in any field.
func TestIsAbout(t *testing.T) {
	c, err := Compile([]kinds.Pair{{From: "csharpLegacy", Fields: []string{"a[].b"}}, {From: "generic", Fields: []string{"a[].b", "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	octets := [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	for _, tt := range []struct {
		path     string
		subtype  byte
		is, uuid bool
	}{
		{"a.0.b", 3, true, true},
		{"c", 3, false, true},
		{"a.0.b", 4, false, false},
		{"a.0.b", 0, true, true},
		{"c", 0, true, true},
	} {
		v := Value{Subtype: tt.subtype, Octets: octets}
		if is := c.IsAbout(tt.path, v); is != tt.is {
			t.Errorf("%s, subtype %d: %v", tt.path, tt.subtype, is)
		}
		if _, ok := c.UUID(v); ok != tt.uuid {
			t.Errorf("the UUID of subtype %d: %v", tt.subtype, ok)
		}
	}
	if _, ok := c.UUID(ValueOf(bson.TypeString, []byte("\x02\x00\x00\x00x\x00"))); ok {
		t.Error("text has a UUID of a binary kind")
	}
}

// A path that leads through a value has nothing, and the filter of a step is a part of that of an update.
func TestFilterOfModel(t *testing.T) {
	octets := [16]byte{1}
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.Binary{Subtype: 3, Data: octets[:]}}})
	if err != nil {
		t.Fatal(err)
	}
	held := HeldBy(doc, 1)
	if _, ok := held.At("a.b"); ok || !held.HasOld(Change{Path: "a", Old: Value{Subtype: 3, Octets: octets}}) || held.HasOld(Change{Path: "a.b", Old: Value{Subtype: 3, Octets: octets}}) {
		t.Error("a binary value has a field, or is not there")
	}
	c, err := Compile([]kinds.Pair{{From: "javaLegacy"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Edits(doc)
	if err != nil || len(p.Changes) != 1 {
		t.Fatal(p, err)
	}
	_, and, err := bson.MarshalValue(bson.A{bson.D{{Key: "kind", Value: 7}}})
	if err != nil {
		t.Fatal(err)
	}
	with, without := p.Model(bson.RawValue{Type: bson.TypeArray, Value: and}), p.Model(bson.RawValue{})
	if got, err := with.Filter.(bson.Raw).LookupErr("$and", "0", "kind"); err != nil || got.Int32() != 7 {
		t.Error(got, err)
	}
	if got, err := without.Filter.(bson.Raw).LookupErr("$and"); err == nil {
		t.Error(got)
	}
}

package structcodec_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FuzzDecode decodes a document into each type of the corpus, and of whole documents, with plans and with the driver.
func FuzzDecode(f *testing.F) {
	g := &generator{rng: rand.New(rand.NewPCG(7, 7))}
	types := slices.Concat(corpus, topTypes)
	for range 5 {
		for i, typ := range types {
			f.Add(uint8(i), g.document(typ, 3))
		}
	}
	// A document within another one that lacks its last byte, found by fuzzing.
	for i := range types {
		f.Add(uint8(i), []byte(" \x00\x00\x00\x03a\x00\x18\x00\x00\x00\x02key\x00\x03\x00\x00\x0012\x00\nvalue\x7f\xff\x00"))
	}
	driver, plans := registries(registerCallers)
	option := func(*bson.Decoder) {}
	f.Fuzz(func(t *testing.T, i uint8, doc []byte) {
		if statedLength(doc) != len(doc) || !valid(doc) {
			return // the driver allocates what a length says, or never comes back
		}
		typ := types[int(i)%len(types)]
		want, got := reflect.New(typ), reflect.New(typ)
		wantErr := decodeStream(driver, doc, want.Interface(), option)
		gotErr := decodeStream(plans, doc, got.Interface(), option)
		if !sameError(wantErr, gotErr) && !endsWithin(wantErr, gotErr) {
			t.Errorf("got %v, want %v", gotErr, wantErr)
		}
		if !same(want, got) {
			t.Errorf("got %s, want %s", dump(got), dump(want))
		}
	})
}

// FuzzCase makes a type, a value and a document from a seed, and does with them what TestDifferential does.
func FuzzCase(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, seed, stream uint64) {
		g := &generator{rng: rand.New(rand.NewPCG(seed, stream))}
		driver, plans := registries(g.callers())
		if err := g.compare(driver, plans, g.topType()); err != nil {
			t.Error(err)
		}
	})
}

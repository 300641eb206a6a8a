package offline

import (
	"bytes"
	"encoding/json"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// FuzzOplogEntry converts any entry of an oplog. Only values of the conversion change: with the
// permutation undone in the bytes that changed, the entry is what it was.
func FuzzOplogEntry(f *testing.F) {
	u := stored([16]byte{6: 0x40, 8: 0x80}, "javaLegacy")
	for _, o := range []any{
		bson.D{{Key: "_id", Value: u}, {Key: "a", Value: bson.A{u}}},
		bson.D{{Key: "$v", Value: int32(1)}, {Key: "$set", Value: bson.D{{Key: "a.0", Value: u}}}},
		bson.D{{Key: "$v", Value: int32(2)}, {Key: "diff", Value: bson.D{{Key: "u", Value: bson.D{{Key: "a", Value: u}}}, {Key: "sa", Value: bson.D{{Key: "a", Value: true}, {Key: "u0", Value: u}}}}}},
		bson.D{{Key: "applyOps", Value: bson.A{bson.D{{Key: "op", Value: "i"}, {Key: "ns", Value: "d.c"}, {Key: "o", Value: bson.D{{Key: "_id", Value: u}}}}}}},
	} {
		for _, op := range []string{"i", "u", "c", "d"} {
			f.Add(dumptest.BSON(f, bson.D{{Key: "op", Value: op}, {Key: "ns", Value: "d.c"}, {Key: "o", Value: o}, {Key: "o2", Value: bson.D{{Key: "_id", Value: u}}}}))
		}
	}
	there, back := conversion(f, "javaLegacy", "standard"), conversion(f, "standard", "javaLegacy")
	all := func(c convert.Conversion) *run { // converts every value
		d := &Decisions{From: c.From.Name, Collections: []Decided{{"d.c", decide.Decision{From: c.From.Name, Subtype: c.From.Subtype, BySubtype: true}}}}
		r := &run{Job: &Job{Conversion: c, Decisions: d}, collections: make(map[*dump.Collection]*Collection)}
		r.operations = newOperations(r)
		return r
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Contains(b, append([]byte{16, 0, 0, 0}, 4)) { // a value of the new kind would be converted back
			return
		}
		c := &Collection{Namespace: "oplog"}
		doc, err := all(there).operations.entry(c, b)
		if err != nil {
			return
		}
		if again, err := all(back).operations.entry(&Collection{Namespace: "oplog"}, doc); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x became %x, and %x: %v", b, doc, again, err)
		}
	})
}

// FuzzMetadata looks for constants in any metadata.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"options":{"validator":{"u":{"$ne":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"03"}}}}},"indexes":[]}`))
	f.Add([]byte(`{"options":{"validator":{"u":{"$binary":"AAAAAAAAAAAAAAAAAAAAAA==","$type":"03"}}}}`))
	f.Add([]byte(`{"indexes":[{"key":{"a":"text"},"partialFilterExpression":{"a":{"$regex":"x"}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &run{Job: &Job{Conversion: conversion(t, "javaLegacy", "standard")}}
		c := &Collection{Namespace: "d.c", Role: Converted}
		r.constants(c, &dump.Item{Kind: dump.Metadata, Text: text})
		if int64(len(c.Constants)) != r.res.Constants {
			t.Errorf("%d constants, %d counted", len(c.Constants), r.res.Constants)
		}
	})
}

// FuzzDecisions parses any decision file. What is parsed can be written and used.
func FuzzDecisions(f *testing.F) {
	f.Add([]byte(`{"bsonids":"decision 1","from":"javaLegacy","collections":[{"collection":"d.c","decision":{"subtype":3,"from":"javaLegacy","fields":[{"path":"u","basis":"evidence","versions":[4],"equal":["AAAA"]}]}}]}`))
	f.Add([]byte(`{"bsonids":"decision 1","from":"standard","collections":[{"collection":"d.c","decision":{"subtype":4,"from":"standard","bySubtype":true}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDecisions(b)
		if err != nil {
			return
		}
		from, err := kinds.ParseBinary(d.From)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range d.Collections {
			_ = d.For(c.Namespace).Judge(from.Order).Value([]byte("u"), [16]byte{})
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseDecisions(again); err != nil {
			t.Errorf("%s: %v", again, err)
		}
	})
}

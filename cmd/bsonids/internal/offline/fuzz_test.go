package offline

import (
	"encoding/json"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

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

package offline

import (
	"testing"
)

// FuzzMetadata looks for constants in any metadata.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"options":{"validator":{"u":{"$ne":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"03"}}}}},"indexes":[]}`))
	f.Add([]byte(`{"options":{"validator":{"u":{"$binary":"AAAAAAAAAAAAAAAAAAAAAA==","$type":"03"}}}}`))
	f.Add([]byte(`{"indexes":[{"key":{"a":"text"},"partialFilterExpression":{"a":{"$regex":"x"}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newRun(&Job{Collections: map[string]Treatment{"d.c": {Conversion: conversion(t, "javaLegacy")}}})
		r.constants(&Collection{Namespace: "d.c", role: converted}, text)
	})
}

package duplicates

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

func finder(tb testing.TB) *Finder {
	tb.Helper()
	f := &Finder{Patience: new(patience.Patience), Progress: func(int64, string, string) terminal.Progress { return terminal.NoProgress{} }}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	})
	return f
}

// conversion returns a conversion of fields, which are named as kind:field.
func conversion(tb testing.TB, of ...string) rule.Conversion {
	tb.Helper()
	var pairs []kinds.Pair
	for _, p := range of {
		from, field, _ := strings.Cut(p, ":")
		pairs = append(pairs, kinds.Pair{From: from, Fields: []string{field}})
	}
	c, err := rule.Compile(pairs)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func part(tb testing.TB, query bson.D, of ...string) Part {
	tb.Helper()
	return Part{Selection: convert.Selection{Conversion: conversion(tb, of...), Query: query}}
}

// found returns what is counted by index, and the lines of the file without the collection.
func found(tb testing.TB, f *Finder) (counted map[string]int64, lines []string) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "duplicates.jsonl")
	r, err := f.Report(path)
	if err != nil {
		tb.Fatal(err)
	}
	counted = make(map[string]int64)
	if r == nil {
		return counted, nil
	}
	for _, c := range r.Counted {
		counted[c.Index] = c.Documents
	}
	b, err := os.ReadFile(path)
	if (len(b) > 0) != r.Any() || err != nil && (r.Any() || !errors.Is(err, fs.ErrNotExist)) {
		tb.Fatalf("%+v: %d bytes, %v", r, len(b), err)
	}
	for line := range bytes.Lines(b) {
		if !json.Valid(line) {
			tb.Errorf("%s", line)
		}
		lines = append(lines, string(bytes.TrimSpace(line)))
	}
	return counted, lines
}

// world makes random documents, of few UUIDs in many forms.
type world struct {
	r     *rand.Rand
	uuids [][16]byte
}

func (w *world) value(forms ...string) any {
	u := w.uuids[w.r.IntN(len(w.uuids))]
	switch form := forms[w.r.IntN(len(forms))]; form {
	case "text":
		text := []string{fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), hex.EncodeToString(u[:])}[w.r.IntN(2)]
		return []string{text, strings.ToUpper(text)}[w.r.IntN(2)]
	case "null":
		return nil
	case "goStruct":
		doc := bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}
		if n := w.r.IntN(3); n > 0 {
			doc = append(doc, bson.E{Key: "valid", Value: n == 1})
		}
		return doc
	case "number":
		return int32(w.r.IntN(2))
	case "array":
		list := bson.A{}
		for range w.r.IntN(3) {
			list = append(list, w.value("javaLegacy", "standard", "number"))
		}
		return list
	case "document":
		return bson.D{{Key: "b", Value: w.value("javaLegacy", "standard", "generic", "array")}, {Key: "n", Value: []any{int32(1), 1.0, int64(2)}[w.r.IntN(3)]}}
	case "documents":
		list := bson.A{}
		for range w.r.IntN(3) {
			list = append(list, w.value("document", "number"))
		}
		return list
	default:
		return kindstest.Stored(u, form)
	}
}

// keysOf is the same as index.keys, in decoded documents that need no path with more than two names. A key is text.
func keysOf(doc bson.D, path string, sparse bool) map[string]bool {
	keys := make(map[string]bool)
	get := func(of any, name string) (any, bool) {
		d, _ := of.(bson.D)
		for _, e := range d {
			if e.Key == name {
				return e.Value, true
			}
		}
		return nil, false
	}
	var text func(v any) string
	text = func(v any) string {
		switch v := v.(type) {
		case int32, int64, float64:
			return fmt.Sprint("number ", v)
		case bson.D:
			all := "{"
			for _, e := range v {
				all += e.Key + ":" + text(e.Value) + ","
			}
			return all + "}"
		case bson.A:
			all := "["
			for _, e := range v {
				all += text(e) + ","
			}
			return all + "]"
		}
		return fmt.Sprintf("%T %v", v, v)
	}
	add := func(v any, ok bool) {
		list, isList := v.(bson.A)
		switch {
		case !ok && sparse:
		case !ok || v == nil:
			keys["null"] = true
		case isList && len(list) == 0:
			keys["nothing"] = true
		case isList:
			for _, e := range list {
				keys[text(e)] = true
			}
		default:
			keys[text(v)] = true
		}
	}
	first, second, deep := strings.Cut(path, ".")
	v, ok := get(doc, first)
	list, isList := v.(bson.A)
	switch {
	case !deep:
		add(v, ok)
	case isList && len(list) > 0:
		for _, e := range list {
			add(get(e, second))
		}
	default:
		add(get(v, second))
	}
	return keys
}

// Random documents are compared with all others, one by one: a document is counted if it gets a key that another one has, or gets
// and comes first.
func TestFindAgainstAll(t *testing.T) {
	s := memory.Start(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	total := make(map[string]int64)
	for n := range 300 {
		w := &world{r: rand.New(rand.NewPCG(seed, uint64(n)))}
		for range 10 {
			w.uuids = append(w.uuids, [16]byte(kindstest.Octets(w.r)))
		}
		fields := []string{"a", "s", "a.b"}
		forms := map[string][]string{"a": {"javaLegacy", "standard", "generic", "null", "array", "document", "documents"}, "s": {"text", "standard", "null", "number"}}
		pairs := []string{"javaLegacy:a", "javaLegacy:a.b", "generic:a.b", "text:s"}
		if w.r.IntN(3) == 0 {
			forms["a"], pairs = []string{"javaLegacy", "number"}, []string{"javaLegacy:a"} // nothing can become equal
		}
		if w.r.IntN(3) == 0 {
			fields, pairs = append(fields, "g"), append(pairs, "goStruct:g")
			forms["g"] = []string{"goStruct", "goStruct", "standard", "null"}
		}
		coll := s.Client.Database("d").Collection(fmt.Sprintf("c%d", n))
		copied := w.r.IntN(2) == 0
		if copied {
			pairs = append(pairs, "javaLegacy:_id", "javaLegacy:_id.b", "generic:_id.b")
		}
		sparse := w.r.IntN(2) == 0
		var docs []bson.Raw
		has := make(map[string]bool) // keys: a server has no two equal ones
		for i := range w.r.IntN(40) {
			var id any = int32(i)
			if w.r.IntN(2) == 0 {
				id = w.value("javaLegacy", "standard", "document")
			}
			doc := bson.D{{Key: "_id", Value: id}, {Key: "f", Value: int32(w.r.IntN(3))}}
			for _, name := range slices.Sorted(maps.Keys(forms)) {
				if w.r.IntN(5) > 0 {
					doc = append(doc, bson.E{Key: name, Value: w.value(forms[name]...)})
				}
			}
			var keys []string
			for _, field := range append([]string{"_id"}, fields...) {
				for key := range keysOf(doc, field, sparse && field != "_id") {
					if field == "g" || !strings.HasPrefix(key, "number") && key != "null" && key != "nothing" { // the conversion makes none of these
						keys = append(keys, field+" "+key)
					}
				}
			}
			if slices.ContainsFunc(keys, func(key string) bool { return has[key] }) {
				continue
			}
			for _, key := range keys {
				has[key] = true
			}
			docs = append(docs, raw(t, doc))
		}
		s.Put(coll, docs...)
		var indexes []bson.D
		for _, f := range fields {
			indexes = append(indexes, bson.D{{Key: "name", Value: f}, {Key: "key", Value: bson.D{{Key: f, Value: 1}}}, {Key: "unique", Value: true}, {Key: "sparse", Value: sparse}})
		}
		s.Describe(coll, "collection", bson.D{}, indexes...)
		if copied {
			fields = append(fields, "_id")
		}
		c := Collection{Collection: coll, Copied: copied, Parts: []Part{part(t, nil, pairs...)}}
		selects := func(bson.D) bool { return true }
		switch w.r.IntN(3) {
		case 0: // two filters, which leave documents out
			selects = func(doc bson.D) bool { return doc[1].Value != int32(2) }
			c.Parts = []Part{part(t, bson.D{{Key: "f", Value: int32(0)}}, pairs...), part(t, bson.D{{Key: "f", Value: int32(1)}}, pairs...)}
		case 1: // what a survey has found
			sc := scan.New(t.TempDir(), time.Now(), false)
			collector, err := sc.Collection("d", coll.Name())
			for _, d := range docs {
				err = errors.Join(err, collector.Add(d))
			}
			all, e := sc.Decide()
			if err := errors.Join(err, e, sc.Close()); err != nil {
				t.Fatal(err)
			}
			c.Scan = &all[0]
		}

		f := finder(t)
		if err := f.Find(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		counted, lines := found(t, f)
		byText := func(id any) string {
			b, err := bson.MarshalExtJSON(bson.D{{Key: "_id", Value: id}}, true, false)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		allowed := make(map[string]bool) // pairs
		for _, field := range fields {
			index := map[bool]string{false: field, true: "_id_"}[field == "_id"]
			were, are := make([]map[string]bool, len(docs)), make([]map[string]bool, len(docs))
			decoded := make([]bson.D, len(docs))
			for i, d := range docs {
				var after bson.D
				err := bson.Unmarshal(d, &decoded[i])
				out := d
				if selects(decoded[i]) {
					var e error
					out, _, _, e = c.Parts[0].Conversion.Rewrite(d)
					err = errors.Join(err, e)
				}
				if err := errors.Join(err, bson.Unmarshal(out, &after)); err != nil {
					t.Fatal(err)
				}
				were[i], are[i] = keysOf(decoded[i], field, sparse && field != "_id"), keysOf(after, field, sparse && field != "_id")
			}
			holds := make(map[string][2]int) // documents that have a key already, and that get it
			for i := range docs {
				for key := range are[i] {
					n := holds[key]
					if were[i][key] {
						n[0]++
					} else {
						n[1]++
					}
					holds[key] = n
				}
			}
			var pairsOf int
			documents := make(map[int]bool)
			for i := range docs {
				for key := range are[i] {
					if were[i][key] || holds[key][0]+holds[key][1] < 2 {
						continue
					}
					documents[i] = true
					for j := range docs {
						if i != j && are[j][key] {
							allowed[field+byText(decoded[i][0].Value)+byText(decoded[j][0].Value)] = true
						}
					}
				}
			}
			first := 0
			for _, n := range holds {
				pairsOf += n[1]
				if n[0] == 0 && n[1] > 0 {
					pairsOf-- // the first of them gets the value
					if n[1] > 1 {
						first++
					}
				}
			}
			got := counted[index]
			total[field] += got
			lineCount := 0
			for _, l := range lines {
				if strings.Contains(l, fmt.Sprintf(`"field":%q`, field)) {
					lineCount++
				}
			}
			if lineCount != pairsOf || got > int64(len(documents)) || got < int64(len(documents)-first) || (got > 0) != (pairsOf > 0) {
				t.Fatalf("run %d, %s: %d documents in %d pairs, want %d pairs, and of %d documents all but at most %d\n%s", n, field, got, lineCount, pairsOf, len(documents), first, strings.Join(lines, "\n"))
			}
		}
		for _, l := range lines {
			var line struct {
				Collection, Field string
				ID                any `bson:"_id"`
				Other             any
			}
			if err := bson.UnmarshalExtJSON([]byte(l), true, &line); err != nil || line.Collection != "d."+coll.Name() {
				t.Fatalf("%s: %v", l, err)
			}
			if !allowed[line.Field+byText(line.ID)+byText(line.Other)] {
				t.Fatalf("run %d: %s is no pair", n, l)
			}
		}
	}
	for _, field := range []string{"a", "s", "a.b", "g", "_id"} {
		if total[field] < 20 {
			t.Errorf("%s: only %d documents in all: the test shows little", field, total[field])
		}
	}
}

// An index that is not counted is named if the conversion changes its values, whichever of its fields they are in. In place, the
// values in _id stay. A unique value in an array counts once for each document, and the pairs are all there.
func TestReport(t *testing.T) {
	s := memory.Start(t)
	coll := s.Client.Database("d").Collection("c")
	index := func(name string, key bson.D, more ...bson.E) bson.D {
		return append(bson.D{{Key: "name", Value: name}, {Key: "key", Value: key}, {Key: "unique", Value: true}}, more...)
	}
	key := func(names ...string) (d bson.D) {
		for _, n := range names {
			d = append(d, bson.E{Key: n, Value: 1})
		}
		return d
	}
	s.Describe(coll, "collection", bson.D{}, index("a", key("a")), index("ab", key("b", "a")), index("b", key("b")), index("bc", key("b", "c")), index("id", key("_id.x", "b")),
		index("partial", key("a"), bson.E{Key: "partialFilterExpression", Value: bson.D{{Key: "b", Value: 1}}}))
	stored := func(kind string, bytes ...byte) (list bson.A) {
		for _, b := range bytes {
			list = append(list, kindstest.Stored([16]byte{b}, kind))
		}
		return list
	}
	s.Put(coll, raw(t, bson.D{{Key: "_id", Value: "x"}, {Key: "a", Value: stored("javaLegacy", 1, 2, 3)}}), raw(t, bson.D{{Key: "_id", Value: "y"}, {Key: "a", Value: stored("standard", 1, 2)}}))
	f := finder(t)
	if err := f.Find(t.Context(), Collection{Collection: coll, Parts: []Part{part(t, nil, "javaLegacy:a", "javaLegacy:_id.x")}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "duplicates.jsonl")
	r, err := f.Report(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Counted{{"c", "a", "a", 1}}; !slices.Equal(r.Counted, want) {
		t.Errorf("%v, want %v", r.Counted, want)
	}
	if want := []NotCounted{{"c", "ab", "it is compound"}, {"c", "partial", "it is partial"}}; !slices.Equal(r.NotCounted, want) {
		t.Errorf("%v, want %v", r.NotCounted, want)
	}
	line := `{"collection":"d.c","field":"a","_id":"x","other":"y"}` + "\n"
	if b, err := os.ReadFile(path); err != nil || string(b) != line+line || r.File != path || !r.Any() {
		t.Errorf("%s, %v, %+v", b, err, r)
	}
	lines := []string{
		"c, a: 1 document would get the value of another one; the pairs are in duplicates.jsonl",
		"c, unique index ab: documents that would get the value of another one are not counted, because it is compound",
		"c, unique index partial: documents that would get the value of another one are not counted, because it is partial",
	}
	if got := r.Lines(); !slices.Equal(got, lines) {
		t.Errorf("%q", got)
	}

	// A finder that finds nothing removes the file of an earlier one, and says nothing if nothing is unique.
	for _, what := range []struct {
		of   string
		want *Report
	}{{"javaLegacy:c", nil}, {"generic:a", &Report{Counted: []Counted{{"c", "a", "a", 0}}}}} {
		if what.want == nil {
			s.Describe(coll, "collection", bson.D{}, index("a", key("a")))
		}
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		f := finder(t)
		err := f.Find(t.Context(), Collection{Collection: coll, Parts: []Part{part(t, nil, what.of)}})
		r, e := f.Report(path)
		if _, there := os.Stat(path); err != nil || e != nil || !errors.Is(there, fs.ErrNotExist) || r.Any() || len(r.Lines()) > 0 || (r == nil) != (what.want == nil) || r != nil && !slices.Equal(r.Counted, what.want.Counted) {
			t.Errorf("%s: %+v, %v, %v, %v", what.of, r, err, e, there)
		}
	}
}

// Extended JSON lacks some types. A pair of such _ids is in the file, without them.
func TestPairWithoutJSON(t *testing.T) {
	s := memory.Start(t)
	f := finder(t)
	odd := bson.RawValue{Type: 0x33}
	if err := f.pair(s.Client.Database("d").Collection("c"), "a", odd, odd); err != nil {
		t.Fatal(err)
	}
	_, lines := found(t, f)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], `{"collection":"d.c","field":"a","error":"an _id of the pair cannot be written as extended JSON`) {
		t.Errorf("%q", lines)
	}
}

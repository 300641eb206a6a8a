package offline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// A dump in any form and any representation becomes what the same documents are in another
// representation, and back again. The record, and what belongs to the server, stays as it is.
func TestRoundTrip(t *testing.T) {
	kinds := []string{"standard", "pythonLegacy", "csharpLegacy", "javaLegacy"}
	for i, from := range kinds {
		for j, to := range kinds {
			if i == j {
				continue
			}
			r := rand.New(rand.NewPCG(uint64(i), uint64(j)))
			before, after := shop(r, 20+r.IntN(40), from, to)
			for form, path := range forms(t, before) {
				what := form + " from " + from + " to " + to
				out, back := output(t, path), output(t, path)
				res, _, err := job(t, path, conversion(t, from, to), nil).run(t.Context(), t, out)
				if err != nil || !res.Complete() {
					t.Fatalf("%s: %v, %+v", what, err, res)
				}
				n := int64(len(before[0].Documents))
				if values, changed := res.total(); changed != 2*n || values != 5*n || res.Documents != 2*n+2 {
					t.Errorf("%s: %+v", what, res)
				}
				equal(t, what, contents(t, out), wanted(t, after))
				v, err := Verify(t.Context(), job(t, path, conversion(t, from, to), nil), open(t, out))
				if err != nil || !v.Holds() || v.Equal != res.Documents {
					t.Errorf("%s: %v, %+v", what, err, v)
				}
				if _, _, err := job(t, out, conversion(t, to, from), nil).run(t.Context(), t, back); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				equal(t, what+" and back", contents(t, back), wanted(t, before))
			}
		}
	}
}

// What is not planned is copied. A selection of what the dump does not have is an error.
func TestSelection(t *testing.T) {
	before, after := shop(rand.New(rand.NewPCG(1, 1)), 30, "javaLegacy", "standard")
	for form, path := range forms(t, before) {
		out := output(t, path)
		if _, _, err := job(t, path, conversion(t, "javaLegacy", "standard"), nil, "customers").run(t.Context(), t, out); err != nil {
			t.Fatal(err)
		}
		equal(t, form, contents(t, out), wanted(t, concat(after[:1], before[1:])))
		if _, _, err := Survey(t.Context(), reading(t, path, "none")); err == nil || !strings.Contains(err.Error(), `collection "none" does not exist`) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// Values that are left as they are, are listed with their collection, and the output has them.
func TestSkipList(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var docs []any
	for i := range 40 {
		kind := "javaLegacy"
		if i%4 == 0 {
			kind = "csharpLegacy"
		}
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: kindstest.Stored(v4(r, i), kind)}})
	}
	metadata := `{"options":{"validator":{"u":{"$ne":{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"03"}}}}},"indexes":[{"key":{"u":{"$numberInt":"1"}},"partialFilterExpression":{"u":{"$gt":{"$binary":{"base64":"AQECAwQFBgcICQoLDA0ODw==","subType":"03"}}}}}]}`
	for form, path := range forms(t, []dumptest.Collection{{Database: "d", Name: "c", Metadata: metadata, Documents: docs}}) {
		out := output(t, path)
		res, listed, err := job(t, path, conversion(t, "javaLegacy", "standard"), nil).run(t.Context(), t, out)
		if values, _ := res.total(); err != nil || values != 30 || res.Left != 10 || res.Constants != 2 || res.Complete() {
			t.Errorf("%s: %v, %+v", form, err, res)
		}
		if strings.Count(listed, "\n") != 12 || strings.Count(listed, `"collection":"d.c","_id":{"$numberInt"`) != 10 ||
			!strings.Contains(listed, `"_id":null,"path":"options.validator.u.$ne","value":{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"03"}}`) ||
			!strings.Contains(listed, `"path":"indexes.0.partialFilterExpression.u.$gt"`) {
			t.Errorf("%s: %s", form, listed)
		}
		if contents(t, out)["metadata of d.c"] != metadata {
			t.Errorf("%s: the metadata changed", form)
		}
		v, err := Verify(t.Context(), job(t, path, conversion(t, "javaLegacy", "standard"), nil), open(t, out))
		if err != nil || !v.Holds() || v.Left != 10 || v.Constants != 2 {
			t.Errorf("%s: %v, %+v", form, err, v)
		}
	}
}

// Two _ids that become equal are an error, which names them, and nothing is written.
func TestEqualIDs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var docs []any
	for i := range 30 {
		u := v4(r, i)
		docs = append(docs, bson.D{{Key: "_id", Value: bson.D{{Key: "u", Value: kindstest.Stored(u, "javaLegacy")}, {Key: "n", Value: int32(i)}}}})
		if i == 7 {
			docs = append(docs, bson.D{{Key: "_id", Value: bson.D{{Key: "u", Value: kindstest.Stored(u, "standard")}, {Key: "n", Value: float64(i)}}}})
		}
	}
	for form, path := range forms(t, []dumptest.Collection{{Database: "d", Name: "c", Documents: docs}}) {
		for _, out := range []string{output(t, path), ""} {
			_, _, err := job(t, path, conversion(t, "javaLegacy", "standard"), nil).run(t.Context(), t, out)
			if err == nil || !strings.Contains(err.Error(), "equal: 1 documents of d.c get the _id of another one, among them {") || !strings.Contains(err.Error(), `"7`) {
				t.Errorf("%s: %v", form, err)
			}
		}
	}
}

// The buckets of a time series are copied, and counted.
func TestTimeSeries(t *testing.T) {
	u := v4(rand.New(rand.NewPCG(4, 4)), 1)
	bucket := func(kind string) any {
		return bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "meta", Value: kindstest.Stored(u, kind)}, {Key: "data", Value: bson.D{{Key: "x", Value: bson.Binary{Subtype: 7, Data: []byte{1}}}}}}
	}
	collections := []dumptest.Collection{{Database: "d", Name: "w", Type: "timeseries", Metadata: `{"type":"timeseries"}`},
		{Database: "d", Name: "system.buckets.w", Documents: []any{bucket("javaLegacy"), bucket("standard")}},
		{Database: "d", Name: "c", Documents: []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "u", Value: kindstest.Stored(u, "javaLegacy")}}}}}
	for form, path := range forms(t, collections) {
		out := output(t, path)
		res, _, err := job(t, path, conversion(t, "javaLegacy", "standard"), nil).run(t.Context(), t, out)
		if values, _ := res.total(); err != nil || res.Left != 4 || values != 0 { // a value that nothing decides, one in a bucket, and compressed measurements twice
			t.Errorf("%s: %v, %+v", form, err, res)
		}
		equal(t, form, contents(t, out), contents(t, path))
	}
}

// A damaged dump, a full disk in the middle, or an interrupt leaves nothing under any name.
func TestNothingIsLeft(t *testing.T) {
	before, _ := shop(rand.New(rand.NewPCG(5, 5)), 3000, "javaLegacy", "standard")
	for form, path := range forms(t, before) {
		ctx, cancel := context.WithCancel(t.Context())
		j := job(t, path, conversion(t, "javaLegacy", "standard"), nil)
		j.Progress = func(int) { cancel() }
		if _, _, err := j.run(ctx, t, output(t, path)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// A document that is not BSON is damage, at its offset, also if its length and its end are right.
func TestCorruptDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d", "c.bson")
	good := dumptest.BSON(t, bson.D{{Key: "_id", Value: int32(1)}})
	bad := dumptest.BSON(t, bson.D{{Key: "s", Value: "text"}})
	bad[7] = 100 // the length of the text
	dumptest.Write(t, path, concat(good, bad))
	_, _, err := Survey(t.Context(), reading(t, path))
	if want := fmt.Sprintf("%s is damaged at byte %d", path, len(good)); !errors.Is(err, walk.ErrCorrupt) || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// An input that changes while it is read is an error, and so is one that has changed since the survey.
func TestChangedInput(t *testing.T) {
	before, _ := shop(rand.New(rand.NewPCG(6, 6)), 3000, "javaLegacy", "standard")
	path := filepath.Join(t.TempDir(), "dump")
	dumptest.Directory(t, path, false, before...)
	changing, half := filepath.Join(path, "shop", "customers.bson"), dumptest.BSON(t, before[0].Documents[:1500]...)
	j := job(t, path, conversion(t, "javaLegacy", "standard"), nil)
	j.Progress = func(int) { dumptest.Write(t, changing, half) }
	if _, _, err := j.run(t.Context(), t, output(t, path)); err == nil || !strings.Contains(err.Error(), changing+": it changed while it was read") {
		t.Error(err)
	}
	j.Input, j.Progress = open(t, path), func(int) {}
	if _, _, err := j.run(t.Context(), t, output(t, path)); err == nil || !strings.Contains(err.Error(), "not the dump that the plan was made of") {
		t.Error(err)
	}
}

// A proof finds each kind of difference.
func TestVerifyFinds(t *testing.T) {
	before, after := shop(rand.New(rand.NewPCG(7, 7)), 30, "javaLegacy", "standard")
	path := filepath.Join(t.TempDir(), "dump")
	dumptest.Directory(t, path, false, before...)
	docs := after[0].Documents
	for name, tt := range map[string]struct {
		change                       func(out string)
		wrong, missing, extra, other int64
	}{
		"nothing": {func(string) {}, 0, 0, 0, 0},
		"wrong": {func(out string) {
			dumptest.Write(t, out, dumptest.BSON(t, concat(before[0].Documents[:1], docs[1:])...))
		}, 1, 0, 0, 0},
		"missing": {func(out string) { dumptest.Write(t, out, dumptest.BSON(t, docs[:28]...)) }, 0, 2, 0, 0},
		"extra":   {func(out string) { dumptest.Write(t, out, dumptest.BSON(t, concat(docs, docs[:1])...)) }, 0, 0, 1, 0},
		"a file":  {func(out string) { _ = os.Remove(out) }, 0, 0, 0, 1},
		"metadata": {func(out string) {
			dumptest.Write(t, filepath.Join(filepath.Dir(out), "empty.metadata.json"), []byte("{}"))
		}, 0, 0, 0, 1},
	} {
		out := filepath.Join(t.TempDir(), "out")
		dumptest.Directory(t, out, false, after...)
		tt.change(filepath.Join(out, "shop", "customers.bson"))
		v, err := Verify(t.Context(), job(t, path, conversion(t, "javaLegacy", "standard"), nil), open(t, out))
		if err != nil || v.Wrong != tt.wrong || v.Missing != tt.missing || v.Extra != tt.extra || v.Other != tt.other || v.Holds() != (name == "nothing") {
			t.Errorf("%s: %v, %+v", name, err, v)
		}
	}
}

// A dump with an oplog is refused: the survey, the conversion, and the proof. Nothing is
// written.
func TestOplogRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	c := []dumptest.Collection{{Database: "d", Name: "c", Metadata: `{}`}, {Name: "oplog", Documents: []any{
		bson.D{{Key: "op", Value: "d"}, {Key: "ns", Value: "d.c"}, {Key: "o", Value: bson.D{{Key: "_id", Value: kindstest.Stored(v4(r, 1), "javaLegacy")}}}}}}}
	for i := range 40 {
		c[0].Documents = append(c[0].Documents, bson.D{{Key: "_id", Value: kindstest.Stored(v4(r, i), "javaLegacy")}})
	}
	plain, with := forms(t, c[:1]), forms(t, c)
	conv := conversion(t, "javaLegacy", "standard")
	for form, path := range with {
		if _, _, err := Survey(t.Context(), reading(t, path)); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, surveyed: %v", form, err)
		}
		j := job(t, plain[form], conv, nil) // has the conversions
		j.Input = open(t, path)
		if _, _, err := j.run(t.Context(), t, output(t, path)); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, converted: %v", form, err)
		}
		if _, err := Verify(t.Context(), j, open(t, path)); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, verified: %v", form, err)
		}
	}
}

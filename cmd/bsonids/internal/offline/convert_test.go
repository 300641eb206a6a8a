package offline

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
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
				ext := filepath.Ext(path)
				out, back := filepath.Join(t.TempDir(), "out"+ext), filepath.Join(t.TempDir(), "back"+ext)
				res, err := Convert(t.Context(), job(t, open(t, path), out, conversion(t, from, to), Selection{}))
				if err != nil || !res.Complete() {
					t.Fatalf("%s: %v, %+v", what, err, res)
				}
				if n := int64(len(before[0].Documents)); res.Changed != 2*n || res.Values != 5*n || res.Documents != 2*n+2 {
					t.Errorf("%s: %+v", what, res)
				}
				equal(t, what, contents(t, out), wanted(t, after))
				v, err := Verify(t.Context(), job(t, open(t, path), "", conversion(t, from, to), Selection{}), open(t, out))
				if err != nil || !v.Holds() || v.Equal != res.Documents {
					t.Errorf("%s: %v, %+v", what, err, v)
				}
				if _, err := Convert(t.Context(), job(t, open(t, out), back, conversion(t, to, from), Selection{})); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				equal(t, what+" and back", contents(t, back), wanted(t, before))
			}
		}
	}
}

// A selection converts what it names. The rest is copied.
func TestSelection(t *testing.T) {
	before, after := shop(rand.New(rand.NewPCG(1, 1)), 30, "javaLegacy", "standard")
	for form, path := range forms(t, before) {
		out := filepath.Join(t.TempDir(), "out"+filepath.Ext(path))
		j := job(t, open(t, path), out, conversion(t, "javaLegacy", "standard"), Selection{Databases: []string{"shop"}, Collections: []string{"customers"}})
		if _, err := Convert(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		equal(t, form, contents(t, out), wanted(t, concat(after[:1], before[1:])))

		none := Selection{Databases: []string{"shop"}, Collections: []string{"none"}}
		var missing *Missing
		if _, _, err := Survey(t.Context(), reading(t, open(t, path), none)); !errors.As(err, &missing) {
			t.Errorf("%s: %v", form, err)
		}
		out = filepath.Join(t.TempDir(), "none"+filepath.Ext(path))
		j = job(t, open(t, path), out, conversion(t, "javaLegacy", "standard"), Selection{})
		j.Selection = none
		if _, err := Convert(t.Context(), j); !errors.As(err, &missing) || exists(out) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
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
		dir := t.TempDir()
		out := filepath.Join(dir, "out"+filepath.Ext(path))
		j := job(t, open(t, path), out, conversion(t, "javaLegacy", "standard"), Selection{})
		var err error
		if j.SkipList, err = convert.OpenSkipList(filepath.Join(dir, "skipped"), "", nil); err != nil {
			t.Fatal(err)
		}
		res, err := Convert(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.SkipList.Close(); err != nil {
			t.Error(err)
		}
		if res.Values != 30 || res.Left != 10 || res.Constants != 2 || res.Complete() {
			t.Errorf("%s: %+v", form, res)
		}
		b, err := os.ReadFile(j.SkipList.Path())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		if len(lines) != 12 || strings.Count(string(b), `"collection":"d.c","_id":{"$numberInt"`) != 10 ||
			!strings.Contains(string(b), `"_id":null,"path":"options.validator.u.$ne","value":{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"03"}}`) ||
			!strings.Contains(string(b), `"path":"indexes.0.partialFilterExpression.u.$gt"`) {
			t.Errorf("%s: %s", form, b)
		}
		got := contents(t, out)
		if got["metadata of d.c"] != metadata {
			t.Errorf("%s: the metadata changed", form)
		}
		v, err := Verify(t.Context(), job(t, open(t, path), "", conversion(t, "javaLegacy", "standard"), Selection{}), open(t, out))
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
		out := filepath.Join(t.TempDir(), "out"+filepath.Ext(path))
		for _, to := range []string{out, ""} {
			_, err := Convert(t.Context(), job(t, open(t, path), to, conversion(t, "javaLegacy", "standard"), Selection{}))
			var e *EqualIDs
			if !errors.As(err, &e) || e.Namespace != "d.c" || e.Documents != 1 || len(e.IDs) != 1 || !strings.Contains(e.IDs[0], `"7`) {
				t.Errorf("%s: %v", form, err)
			}
		}
		if exists(out) {
			t.Errorf("%s was written", form)
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
		out := filepath.Join(t.TempDir(), "out"+filepath.Ext(path))
		res, err := Convert(t.Context(), job(t, open(t, path), out, conversion(t, "javaLegacy", "standard"), Selection{}))
		if err != nil || res.Left != 4 || res.Values != 0 { // a value that nothing decides, one in a bucket, and compressed measurements twice
			t.Errorf("%s: %v, %+v", form, err, res)
		}
		equal(t, form, contents(t, out), contents(t, path))
	}
}

// A damaged dump, a full disk in the middle, or an interrupt leaves nothing under any name.
func TestNothingIsLeft(t *testing.T) {
	before, _ := shop(rand.New(rand.NewPCG(5, 5)), 3000, "javaLegacy", "standard")
	for form, path := range forms(t, before) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		j := job(t, open(t, path), filepath.Join(dir, "out"+filepath.Ext(path)), conversion(t, "javaLegacy", "standard"), Selection{})
		j.Progress = func(int) { cancel() }
		_, err := Convert(ctx, j)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", form, err)
		}
		if err := j.Output.Abort(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", form, left, err)
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
	_, _, err := Survey(t.Context(), reading(t, open(t, path), Selection{}))
	var d *dump.Damage
	if !errors.As(err, &d) || d.Offset != int64(len(good)) || !errors.Is(err, walk.ErrCorrupt) {
		t.Error(err)
	}
}

// An input that changes between the decision and the conversion is an error.
func TestChangedInput(t *testing.T) {
	before, _ := shop(rand.New(rand.NewPCG(6, 6)), 30, "javaLegacy", "standard")
	path := filepath.Join(t.TempDir(), "dump")
	dumptest.Directory(t, path, false, before...)
	out := filepath.Join(t.TempDir(), "out")
	j := job(t, open(t, path), out, conversion(t, "javaLegacy", "standard"), Selection{})
	dumptest.Write(t, filepath.Join(path, "shop", "customers.bson"), dumptest.BSON(t, before[0].Documents[:10]...))
	if _, err := Convert(t.Context(), j); !errors.Is(err, dump.ErrChanged) || exists(out) {
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
		v, err := Verify(t.Context(), job(t, open(t, path), "", conversion(t, "javaLegacy", "standard"), Selection{}), open(t, out))
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
		if _, _, err := Survey(t.Context(), reading(t, open(t, path), Selection{})); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, surveyed: %v", form, err)
		}
		j := job(t, open(t, plain[form]), "", conv, Selection{}) // has the conversions
		out := filepath.Join(t.TempDir(), "out"+filepath.Ext(path))
		j.Input = open(t, path)
		var err error
		if j.Output, err = dump.Create(out, j.Input); err != nil {
			t.Fatal(err)
		}
		if _, err := Convert(t.Context(), j); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, converted: %v", form, err)
		}
		if err := j.Output.Abort(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is an output: %v", form, err)
		}
		if _, err := Verify(t.Context(), j, open(t, path)); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, verified: %v", form, err)
		}
	}
}

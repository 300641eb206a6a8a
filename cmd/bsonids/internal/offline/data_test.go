package offline

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

var now = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// v4 returns a UUID of version 4 whose ten bits next to the version and the variant are others for each i,
// so that a few values always decide a field.
func v4(r *rand.Rand, i int) (u [16]byte) {
	for j := range u {
		u[j] = byte(r.UintN(256))
	}
	bits := i * 633 // modulo 1024, in no order
	u[6], u[8] = 0x40|byte(bits>>6)&0x0f, 0x80|byte(bits)&0x3f
	return u
}

// shop returns a dump in the representation from, and what its conversion must be.
func shop(r *rand.Rand, n int, from, to string) (before, after []dumptest.Collection) {
	make := func(kind string, ids [][4][16]byte) []dumptest.Collection {
		var customers, orders, kept []any
		for i, u := range ids {
			customers = append(customers, bson.D{{Key: "_id", Value: kindstest.Stored(u[0], kind)}, {Key: "n", Value: int32(i)}})
			orders = append(orders, bson.D{{Key: "_id", Value: bson.D{{Key: "of", Value: kindstest.Stored(u[0], kind)}, {Key: "n", Value: int64(i)}}},
				{Key: "items", Value: bson.A{kindstest.Stored(u[1], kind), bson.D{{Key: "sku", Value: kindstest.Stored(u[2], kind)}, {Key: "a.b", Value: kindstest.Stored(u[3], kind)}}, nil}},
				{Key: "odd", Value: bson.Binary{Subtype: 3, Data: []byte("short")}}, {Key: "md5", Value: bson.Binary{Subtype: 5, Data: u[1][:]}}})
			kept = append(kept, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: kindstest.Stored(u[0], from)}})
		}
		return []dumptest.Collection{
			{Database: "shop", Name: "customers", Metadata: `{"options":{},"indexes":[{"v":2,"key":{"_id":1},"name":"_id_"}],"collectionName":"customers","type":"collection"}`, Documents: customers},
			{Database: "shop", Name: "or/ders", Metadata: `{"collectionName":"or/ders","type":"collection"}`, Documents: orders},
			{Database: "shop", Name: "empty", Metadata: `{"collectionName":"empty","type":"collection"}`},
			{Database: "shop", Name: "all", Type: "view", Metadata: `{"options":{"viewOn":"customers","pipeline":[]},"type":"view"}`},
			{Database: "shop", Name: "bsonids.migrations", Documents: kept[:1]},
			{Database: "admin", Name: "system.users", Documents: kept[:1]},
		}
	}
	ids := [][4][16]byte{}
	for i := range n {
		var u [4][16]byte
		for j := range u {
			u[j] = v4(r, i)
		}
		ids = append(ids, u)
	}
	return make(from, ids), make(to, ids)
}

func open(t testing.TB, path string) *dump.Input {
	t.Helper()
	in, err := dump.Open(path, nil, dump.Collection{})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func reading(t testing.TB, path string, only ...string) Reading {
	return Reading{Input: open(t, path), Collections: only, Temp: t.TempDir(), Now: now, Progress: func(int) {}}
}

// job surveys a dump and returns the conversion of its collections, or of those only.
func job(t testing.TB, path string, c rule.Conversion, trusted []string, only ...string) Job {
	t.Helper()
	r := reading(t, path, only...)
	sv, digest, err := Survey(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	j := Job{Input: r.Input, Temp: r.Temp, Progress: r.Progress, Digest: digest, Collections: make(map[string]Treatment)}
	for _, coll := range sv.Collections {
		d := coll.Scan.Decisions[c[0].From.Name]
		d.BySubtype = c[0].From.BySubtype()
		d.Fields = slices.DeleteFunc(d.Fields, func(f decide.Field) bool {
			return len(c[0].Fields) > 0 && !slices.ContainsFunc(c[0].Fields, func(p walk.Pattern) bool { return p.MatchField(f.Path) })
		})
		d.Trust(trusted)
		conv := slices.Clone(c)
		conv[0].Judge = d.Judge(c[0].From.Order)
		id := len(c[0].Fields) == 0 || slices.ContainsFunc(c[0].Fields, func(p walk.Pattern) bool { return p.Top() == "_id" })
		j.Collections[coll.Namespace(sv.Database)] = Treatment{conv, id}
	}
	return j
}

// run converts a dump to the path out, or tells what it would do if that is empty. It returns what was listed.
func (j Job) run(ctx context.Context, t testing.TB, out string) (res Result, listed string, err error) {
	t.Helper()
	if out == "" {
		res, err = Convert(ctx, j)
		return res, "", err
	}
	list := filepath.Join(t.TempDir(), "skipped")
	if j.SkipList, err = convert.CreateSkipList(list, ""); err != nil {
		t.Fatal(err)
	}
	if j.Output, err = dump.Create(out, j.Input); err != nil {
		t.Fatal(err)
	}
	res, err = Convert(ctx, j)
	if err := errors.Join(j.Output.Close(), j.SkipList.Close()); err != nil {
		t.Fatal(err)
	}
	if left, e := os.ReadDir(filepath.Dir(out)); e != nil || len(left) > 1 || err != nil && len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, e)
	}
	b, _ := os.ReadFile(list)
	return res, string(b), err
}

// output returns a path for the conversion of the dump at path.
func output(t testing.TB, path string) string {
	return filepath.Join(t.TempDir(), "out"+filepath.Ext(path))
}

// total returns how many values were converted, in how many documents.
func (r *Result) total() (values, documents int64) {
	for _, c := range r.Collections {
		values, documents = values+c.Values, documents+c.Changed
	}
	return values, documents
}

// convertAll converts and proves the dump of the collections in every form. The output must be the dump of the
// collections after. check gets the result, and the list of what was left.
func convertAll(t *testing.T, c rule.Conversion, before, after []dumptest.Collection, trusted, only []string, check func(Result, string) bool) {
	t.Helper()
	want := dumptest.Forms(t, after...)
	for form, path := range dumptest.Forms(t, before...) {
		out, j := output(t, path), job(t, path, c, trusted, only...)
		res, listed, err := j.run(t.Context(), t, out)
		if err != nil || !check(res, listed) || !maps.Equal(dumptest.Tree(t, out), dumptest.Tree(t, want[form])) {
			t.Fatalf("%s, from %s: %v, %+v\n%s", form, c[0].From.Name, err, res, listed)
		}
		j.Input = open(t, path)
		made, err := dump.Open(out, nil, j.Input.Only)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := Verify(t.Context(), j, made); err != nil || !v.Holds() || v.Equal != res.Documents || v.Left != res.Left || v.Constants != res.Constants {
			t.Errorf("%s, from %s: %v, %+v", form, c[0].From.Name, err, v)
		}
	}
}

func concat[T any](lists ...[]T) []T { return slices.Concat(lists...) }

func conversion(t testing.TB, from string, fields ...string) rule.Conversion {
	t.Helper()
	return kindstest.Conversion(t, rule.NewConversion, from, fields...)
}

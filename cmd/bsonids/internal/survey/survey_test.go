package survey

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/constants"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

var marshal = kindstest.Marshal

// stored returns n documents with UUIDs of version 4 in the field v, in a representation. Those of one seed are the same UUIDs.
func stored(t *testing.T, seed uint64, n int, kind string) (docs []bson.Raw) {
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		u := [16]byte(kindstest.Octets(r))
		u[6], u[8] = 0x40|u[6]&0x0f, 0x80|u[8]&0x3f
		docs = append(docs, marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "v", Value: kindstest.Stored(u, kind)}}))
	}
	return docs
}

// served returns the database of a server with the collections a and b, which have the same UUIDs, a view, a time series, and a
// collection of the server and one of this program.
func served(t *testing.T) (*memory.Server, *mongo.Database) {
	s := memory.Start(t)
	db := s.Client.Database("d")
	s.Put(db.Collection("b"), stored(t, 1, 20, "standard")...)
	s.Put(db.Collection("a"), stored(t, 1, 20, "javaLegacy")...)
	s.Describe(db.Collection("view"), "view", bson.D{{Key: "viewOn", Value: "a"}, {Key: "pipeline", Value: bson.A{}}})
	s.Describe(db.Collection("series"), "timeseries", nil)
	s.Put(db.Collection("system.js"))
	s.Put(db.Collection(record.Name))
	return s, db
}

// shown counts what the progress shows, by what is done.
type shown map[string]int

func (s shown) options(o Options) Options {
	o.Progress = func(_ int64, doing, namespace string) terminal.Progress {
		s[doing+" "+namespace]++
		return terminal.NoProgress{}
	}
	return o
}

func names(s *Survey) (all []string) {
	for _, c := range s.Collections {
		all = append(all, c.Namespace(""))
	}
	return all
}

// All collections are read, in the order of their names, with what the server tells of them, and the values tell the orders of fields and
// which of them have the same UUIDs. What is not read is named with the reason.
func TestMake(t *testing.T) {
	s, db := served(t)
	s.Put(db.Collection("b"), append(stored(t, 1, 20, "standard"), bson.Raw("\x10\x00\x00\x00\x03a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))...)
	s.Describe(db.Collection("a"), "", bson.D{{Key: "validator", Value: bson.D{{Key: "v", Value: kindstest.Value("javaLegacy")}}}},
		bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "v", Value: int32(1)}}}, {Key: "name", Value: "v_1"}, {Key: "partialFilterExpression", Value: bson.D{{Key: "v", Value: kindstest.Value("javaLegacy")}}}},
		bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "x", Value: int32(1)}}}, {Key: "name", Value: "x_1"}})
	s.Describe(db.Collection("b"), "", bson.D{{Key: "capped", Value: true}})
	show := make(shown)
	sv, err := Make(t.Context(), db, show.options(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if got := names(sv); !slices.Equal(got, []string{"a", "b"}) || sv.Database != "d" || time.Since(sv.Made) > time.Hour || show["reading d.a"] != 1 || show["reading d.b"] != 1 || len(show) != 2 {
		t.Errorf("%q, %v, %v", got, sv.Made, show)
	}
	if want := []string{"a", "b", record.Name, "series", "system.js", "view"}; !slices.Equal(sv.Names, want) {
		t.Errorf("%q, want %q", sv.Names, want)
	}
	if want := []string{"series: a time series, which cannot be converted", "view: a view, which shows the documents of collections"}; !slices.Equal(sv.NotRead, want) {
		t.Errorf("%q, want %q", sv.NotRead, want)
	}
	a, b := sv.Collections[0], sv.Collections[1]
	if d := a.Scan.Decisions["javaLegacy"]; a.Documents != 20 || len(d.Fields) != 1 || d.Fields[0].Path != "v" || d.Fields[0].Basis != decide.Evidence || a.Unexchangeable != "" || a.Kept != "" || a.Sharded != nil || a.Namespace("d") != "d.a" {
		t.Errorf("%+v", a)
	}
	if uuid, err := hex.DecodeString(a.UUID); err != nil || len(uuid) != 16 || a.UUID == b.UUID {
		t.Errorf("%s, %s", a.UUID, b.UUID)
	}
	if b.Documents != 21 || b.Malformed != 1 || !strings.Contains(b.Unexchangeable, "capped") {
		t.Errorf("%+v", b)
	}
	if len(sv.References) != 1 {
		t.Errorf("%+v", sv.References)
	}
	var of []constants.Of
	for _, d := range sv.Definitions {
		of = append(of, d.Of)
	}
	if want := []constants.Of{constants.Validator, constants.Index, constants.View}; !slices.Equal(of, want) || sv.Definitions[1].Index != "v_1" || sv.Definitions[2].On != "a" {
		t.Errorf("%v, %+v", of, sv.Definitions)
	}
}

// Of the collections that are not asked for, a sample is read if that is asked for, and it tells of references too.
func TestMakeSome(t *testing.T) {
	for _, sample := range []bool{false, true} {
		_, db := served(t)
		show := make(shown)
		sv, err := Make(t.Context(), db, show.options(Options{Only: []string{"a"}, Needed: []string{"a"}, Sample: sample}))
		if err != nil || !slices.Equal(names(sv), []string{"a"}) || show["searching d.b"] > 0 != sample || len(sv.References) > 0 != sample {
			t.Errorf("sample %v: %+v, %v", sample, sv, err)
		}
		if sample && (len(sv.Samples) != 1 || sv.Samples[0].Name != "b" || sv.Samples[0].Read != 20 || sv.Samples[0].Of != 20 || sv.Samples[0].Random) {
			t.Errorf("%+v", sv.Samples)
		}
	}
	s, db := served(t)
	s.Put(db.Collection("b"), stored(t, 1, samples+1, "standard")...)
	if sv, err := Make(t.Context(), db, make(shown).options(Options{Only: []string{"a"}, Sample: true})); err != nil || sv.Samples[0].Read != samples || sv.Samples[0].Of != samples+1 || !sv.Samples[0].Random {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"none", "view", "series", "system.js"} {
		_, db := served(t)
		var failed *failure.Error
		if _, err := Make(t.Context(), db, make(shown).options(Options{Only: []string{name}, Needed: []string{name}})); !errors.As(err, &failed) || failed.Kind != failure.Usage || !strings.Contains(failed.Text, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A collection is read once by each of its filters. One that the server does not take is told apart from other errors.
func TestMakeFilters(t *testing.T) {
	s, db := served(t)
	first := Filter{`{"_id":0}`, bson.D{{Key: "_id", Value: int32(0)}}}
	others := Filter{`{"_id":{"$ne":0}}`, bson.D{{Key: "_id", Value: bson.D{{Key: "$ne", Value: int32(0)}}}}}
	sv, err := Make(t.Context(), db, make(shown).options(Options{Filters: map[string][]Filter{"a": {first, others}}}))
	if err != nil || !slices.Equal(names(sv), []string{"a " + first.Text, "a " + others.Text, "b"}) || sv.Collections[0].Documents != 1 || sv.Collections[1].Documents != 19 || sv.Collections[0].UUID != sv.Collections[1].UUID {
		t.Errorf("%+v, %v", sv, err)
	}
	s.Before = func(name string, c bson.Raw) (f memory.Fault) {
		if of, _ := c.Lookup("find").StringValueOK(); of == "a" {
			f.Code = 2 // BadValue
		}
		return f
	}
	var of *FilterError
	if _, err := Make(t.Context(), db, make(shown).options(Options{Filters: map[string][]Filter{"a": {first}}})); !errors.As(err, &of) || of.Collection != "a" || of.Filter != first.Text || !failure.Means(err, failure.BadValue) || !strings.HasPrefix(err.Error(), "the filter "+first.Text) {
		t.Error(err)
	}
	if _, err := Make(t.Context(), db, make(shown).options(Options{})); err == nil || errors.As(err, &of) && of.Filter == "" {
		t.Error(err)
	}
}

// What a cutover has left is named, and its definitions are not those of the database. Unless it is asked for by its name, it is no
// sample.
func TestMakeKept(t *testing.T) {
	s, db := served(t)
	at := time.Now()
	cutover := record.Cutover{Saved: record.Saved{ID: "x/cutover", Kind: "cutover", State: record.Released}, Collections: []record.Exchange{{Name: "b", New: "b_new", Kept: "a", InAt: &at, Between: []record.Between{{Name: "c", Merged: true}}}}}
	if _, err := db.Collection(record.Name).InsertOne(t.Context(), cutover); err != nil {
		t.Fatal(err)
	}
	s.Put(db.Collection("c"), stored(t, 1, 20, "standard")...)
	s.Describe(db.Collection("a"), "", bson.D{{Key: "validator", Value: bson.D{{Key: "x", Value: int32(1)}}}})
	sv, err := Make(t.Context(), db, make(shown).options(Options{}))
	if err != nil || !strings.Contains(sv.Collections[0].Kept, "the old collection of b") || !strings.Contains(sv.Collections[2].Kept, "a program created it during the cutover of b") || sv.Collections[1].Kept != "" || len(sv.Definitions) != 1 {
		t.Errorf("%+v, %v", sv, err)
	}
	if sv, err := Make(t.Context(), db, make(shown).options(Options{Only: []string{"b"}, Sample: true})); err != nil || len(sv.Samples) != 0 {
		t.Errorf("%+v, %v", sv.Samples, err)
	}
}

// Values that an earlier conversion may have left because they fit two orders do not make the other one.
func TestMakeEarlier(t *testing.T) {
	for _, converted := range []bool{false, true} {
		s, db := served(t)
		specs, err := db.ListCollectionSpecifications(t.Context(), bson.D{{Key: "name", Value: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		if converted {
			r := record.Run{ID: "a/1", Kind: record.Convert, Task: kinds.Task{Collection: "a", Pairs: []kinds.Pair{{From: "csharpLegacy", Fields: []string{"v"}}}}, UUID: specs[0].UUID, Epoch: 1, Conversion: "m/a", Ended: &ended, Outcome: record.Done, Log: record.Log{Size: 1},
				Decisions: []decide.Decision{{Subtype: 3, From: "csharpLegacy", Fields: []decide.Field{{Path: "v", Basis: decide.Evidence, Versions: []int{4}}}}}}
			if _, err := db.Collection(record.Name).InsertOne(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		s.Put(db.Collection("b"))
		sv, err := Make(t.Context(), db, make(shown).options(Options{}))
		if err != nil {
			t.Fatal(err)
		}
		against := sv.Collections[0].Scan.Decisions["javaLegacy"].Fields[0].Against
		if is := slices.ContainsFunc(against, func(r decide.Rival) bool { return r.Order == "csharpLegacy" }); is != converted {
			t.Errorf("converted %v: %+v", converted, against)
		}
	}
}

// What the user may not read is named, and only what is needed is an error. Any other refusal is one.
func TestMakeDenied(t *testing.T) {
	for name, tt := range map[string]struct {
		command, of string
		code        int32
		o           Options
		want        string // the error
		notRead     string
	}{
		"a collection":          {"find", "a", 13, Options{}, "", "a: the user may not read it"},
		"one that is needed":    {"find", "a", 13, Options{Only: []string{"a"}, Needed: []string{"a"}}, "refused", ""},
		"one that fails":        {"find", "a", 96, Options{}, "refused", ""},
		"its indexes":           {"listIndexes", "a", 13, Options{}, "", "a: the user may not list its indexes, whose filters may have UUIDs"},
		"indexes that fail":     {"listIndexes", "a", 96, Options{}, "refused", ""},
		"a dropped one":         {"listIndexes", "a", 26, Options{}, "", ""},
		"the record":            {"find", record.Name, 13, Options{}, "", ""},
		"the record that fails": {"find", record.Name, 96, Options{}, "refused", ""},
		"the list":              {"listCollections", "", 13, Options{}, "refused", ""},
		"the number":            {"count", "a", 96, Options{}, "refused", ""},
		"shards":                {"find", "collections", 96, Options{}, "refused", ""},
	} {
		s, db := served(t)
		if name == "shards" {
			s.Router.Store(13)
		}
		s.Before = func(is string, c bson.Raw) (f memory.Fault) {
			if of, _ := c.Lookup(is).StringValueOK(); is == tt.command && of == tt.of {
				f.Code = tt.code
			}
			return f
		}
		sv, err := Make(t.Context(), db, make(shown).options(tt.o))
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && slices.Contains(sv.NotRead, tt.notRead) != (tt.notRead != "") {
			t.Errorf("%s: %q", name, sv.NotRead)
		}
		if err == nil && (sv.Denied["a"] != nil) != (name == "a collection") {
			t.Errorf("%s: %v", name, sv.Denied)
		}
	}
	s := memory.Start(t)
	var failed *failure.Error
	if _, err := Make(t.Context(), s.Client.Database("none"), make(shown).options(Options{})); !errors.As(err, &failed) || failed.Kind != failure.Usage || !strings.Contains(failed.Text, `database "none" does not exist`) {
		t.Error(err)
	}
}

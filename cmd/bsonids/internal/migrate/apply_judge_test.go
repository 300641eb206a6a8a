package migrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// undetermined returns n documents with values of subtype 3 of which nothing tells the order.
func undetermined(t testing.TB, n int) (docs []bson.Raw) {
	for i := range n {
		v := []byte{byte(i), 0xf1, 0x9c, 0x33, 0xc7, 0xe8, 0xf0, 0xfb, 0x1e, 0x77, 0x05, 0x98, 0xa4, 0x3d, 0x60, byte(7 * i)}
		docs = append(docs, marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "v", Value: bson.Binary{Subtype: 3, Data: v}}}))
	}
	return docs
}

// other is a run of another migration that has converted values of a from csharpLegacy.
func (m *migrated) other() record.Run {
	now := time.Now().UTC()
	return record.Run{ID: "a/1", Kind: record.Convert, Task: kinds.Task{Collection: "a", Pairs: []kinds.Pair{{From: "csharpLegacy", Fields: []string{"v"}}}}, Epoch: 1,
		Conversion: "other/a", Migration: "other", Started: now, Updated: now, Ended: &now, Outcome: record.Done, Directory: "/other", Log: record.Log{Size: 100}, By: record.Who{Token: "other"}}
}

// cutover inserts a cutover of c in a state into the record.
func (m *migrated) cutover(state string, maker string) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	m.insert(record.Cutover{Saved: record.Saved{ID: "x/cutover", Kind: "cutover", State: state, Begun: at, Updated: at}, FencedAt: &at, FreedAt: &at,
		Collections: []record.Exchange{{Name: "c", New: "c_new", Kept: "c_kept", Maker: maker}}})
}

// What forbids a plan to be applied is said before anything is changed, dry or not.
func TestApplyRefused(t *testing.T) {
	field := func(f func(f *plan.Field)) func(m *migrated) {
		return func(m *migrated) { m.edit(func(p *plan.Plan) { f(&m.entry(p, "a").Fields[0]) }) }
	}
	for name, tt := range map[string]struct {
		spoil func(m *migrated)
		want  string
		usage bool
	}{
		"unknown":      {field(func(f *plan.Field) { f.Decision = plan.Unknown }), `the decision about "v" (subtype 3) is unknown`, true},
		"other order":  {field(func(f *plan.Field) { f.Decision = plan.Convert("csharpLegacy") }), "the values are not csharpLegacy but javaLegacy", true},
		"no migration": {func(m *migrated) { m.edit(func(p *plan.Plan) { p.Migration = "" }) }, "has no migration", true},
		"all are left": {func(m *migrated) {
			m.edit(func(p *plan.Plan) {
				for i := range p.Collections {
					p.Collections[i].Fields[0].Decision, p.Collections[i].Into = plan.Leave, ""
				}
			})
		}, "there is nothing to convert", true},
		"name":   {func(m *migrated) { m.edit(func(p *plan.Plan) { m.entry(p, "c").Into = "system.x" }) }, `invalid collection name "system.x"`, true},
		"record": {func(m *migrated) { m.edit(func(p *plan.Plan) { m.entry(p, "c").Into = record.Name }) }, "the record of conversions", true},
		"of a dump": {func(m *migrated) {
			m.edit(func(p *plan.Plan) { p.Dump, p.Migration = &plan.Dump{Path: "/dump", Digest: "x", Evidence: "y"}, "" })
		}, "the plan is about a dump", true},
		"no directory":      {func(m *migrated) { m.a.Dir += "2" }, "d.d2", true},
		"dropped":           {func(m *migrated) { m.s.Drop(m.collection("a")) }, "the collection \"a\" is not there any more", true},
		"replaced":          {func(m *migrated) { m.s.Drop(m.collection("a")); m.put("a", m.before["a"]...) }, `"a" is another collection of this name`, true},
		"appeared":          {func(m *migrated) { m.put("z", m.before["a"]...) }, `the collection "z" appeared`, true},
		"a new field":       {func(m *migrated) { m.set("a", int32(3), "w", kindstest.Value("javaLegacy")) }, `the field "w" (subtype 3) is not in the plan`, true},
		"another order now": {func(m *migrated) { m.put("a", stored(m, "a", 20, "csharpLegacy")...) }, "nothing was converted: v: the values are csharpLegacy, not javaLegacy", true},
		"two orders now": {func(m *migrated) {
			for i, doc := range stored(m, "x", 20, "csharpLegacy") {
				m.put("a", append(m.docs("a"), marshal(m, bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "v", Value: doc.Lookup("v")}}))...)
			}
		}, `the evidence of "v" (subtype 3) for javaLegacy was`, true},
		"nothing tells any more": {func(m *migrated) { m.put("a", undetermined(m, 20)...) }, "nothing was converted: v: the values do not determine the byte order", true},
		"a copy is there":        {func(m *migrated) { m.put("c_new", m.before["a"][0]) }, `the new collection "c_new" has documents already`, true},
		"fenced": {func(m *migrated) {
			m.cutover(record.Fencing, m.plan.Conversion(kinds.Task{Collection: "c", Into: "c_new"}))
			m.s.Drop(m.collection("c"))
		}, `"fencing"; finish it`, true},
		"no document of a filter": {func(m *migrated) { m.edit(func(p *plan.Plan) { m.entry(p, "a").Filter = `{"x":{"$numberInt":"1"}}` }) }, "no document matches the filter", true},
		"filters with one document": {func(m *migrated) {
			m.edit(func(p *plan.Plan) {
				a := m.entry(p, "a")
				a.Filter, a.Fields[0].Trust = `{"_id":{"$in":[{"$numberInt":"0"},{"$numberInt":"1"}]}}`, true
				b := *a
				b.Filter, b.Fields = `{"_id":{"$in":[{"$numberInt":"2"},{"$numberInt":"1"}]}}`, slices.Clone(a.Fields)
				b.Fields[0].Decision, b.Fields[0].Evidence = plan.Convert("csharpLegacy"), []plan.Evidence{{Order: "csharpLegacy", By: decide.None}}
				p.Collections = append(p.Collections, b)
			})
		}, `the field "v" is converted from csharpLegacy by one filter and from javaLegacy by another one, and both match a document`, true},
		"another migration": {func(m *migrated) { m.insert(m.other()) }, "whose files are in /other, has converted it from csharpLegacy", true},
		"cannot be exchanged": {func(m *migrated) {
			m.s.Describe(m.collection("c"), "", bson.D{{Key: "capped", Value: true}})
		}, "it is a capped collection", true},
		"a validator": {func(m *migrated) {
			m.s.Describe(m.collection("a"), "", bson.D{{Key: "validator", Value: bson.D{{Key: "v", Value: kindstest.Value("javaLegacy")}}}})
		}, "validator", true},
		"not sharded": {func(m *migrated) {
			m.s.Router.Store(13)
			m.s.Put(m.s.Client.Database("config").Collection("collections"), marshal(m, bson.D{{Key: "_id", Value: "d.c"}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}}))
		}, "copies would not be sharded as their collections", true},
		"denied":    {func(m *migrated) { m.deny(13, "find", "a") }, `a`, false},
		"no list":   {func(m *migrated) { m.deny(2, "listCollections", "") }, "", false},
		"no record": {func(m *migrated) { m.deny(2, "find", record.Name) }, "", false},
		"an unread filter": {func(m *migrated) {
			m.edit(func(p *plan.Plan) { m.entry(p, "a").Filter = `{"$where":"1"}` })
			m.deny(2, "find", "a")
		}, `"a"`, true},
	} {
		for _, write := range []bool{false, true} {
			m := planned(t, 20, nil)
			tt.spoil(m)
			m.a.Write = write
			was := map[string][]bson.Raw{"a": m.docs("a"), "b": m.docs("b"), "c": m.docs("c"), "c_new": m.docs("c_new"), record.Name: m.docs(record.Name)}
			_, err := m.apply()
			if err == nil || !strings.Contains(err.Error(), tt.want) || isUsage(err) != tt.usage {
				t.Errorf("%s, write %v: %v", name, write, err)
			}
			m.s.Before = nil
			m.same(was)
		}
	}
}

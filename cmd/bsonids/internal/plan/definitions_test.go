package plan

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/constants"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// A UUID is converted by the decision about its field. What becomes of one whose field is not known, about which nothing is
// decided, or which filters convert in several ways, is given in all readings. One of a field that is left is not listed, and
// none is if no value that is stored so is converted.
func TestRewrite(t *testing.T) {
	const canonical = "00112233-4455-6677-8899-aabbccddeeff"
	field := func(path string, stored kinds.Stored, d Decision) Field {
		return Field{Path: path, Stored: stored, Decision: d}
	}
	of := func(into string, fields ...Field) []Collection {
		return []Collection{{Name: "c", Into: into, Fields: fields}}
	}
	where := func(path string, v any) constants.Definition {
		is := kindstest.Marshal(t, bson.D{{Key: "v", Value: bson.D{{Key: path, Value: v}}}}).Lookup("v")
		return constants.Definition{Of: constants.Validator, Name: "c", Is: is, All: kindstest.Marshal(t, bson.D{{Key: "validator", Value: is}, {Key: "validationLevel", Value: "strict"}})}
	}
	java, csharp, generic, standard := kindstest.Value("javaLegacy"), kindstest.Value("csharpLegacy"), kindstest.Value("generic"), kindstest.Value("standard")
	shell := func(v bson.Binary) string {
		return fmt.Sprintf("{u: BinData(%d, %q)}", v.Subtype, base64.StdEncoding.EncodeToString(v.Data))
	}
	all := []string{"csharpLegacy", "javaLegacy", "pythonLegacy"}
	for name, tt := range map[string]struct {
		collections []Collection
		d           constants.Definition
		from        []string // of the readings; nil if the definition is not listed
		is          string   // what it becomes, or by the last reading but one
	}{
		"java":         {of("", field("u", kinds.Subtype3, Convert("javaLegacy"))), where("u", java), []string{""}, shell(standard)},
		"csharp":       {of("", field("u", kinds.Subtype3, Convert("csharpLegacy"))), where("u", csharp), []string{""}, shell(standard)},
		"in an array":  {of("", field("u[]", kinds.Subtype3, Convert("csharpLegacy"))), where("u", csharp), []string{""}, shell(standard)},
		"generic":      {of("", field("u", kinds.Subtype0, Convert("generic"))), where("u", generic), []string{""}, shell(standard)},
		"text":         {of("", field("u", kinds.OfText, Convert("text"))), where("u", canonical), []string{""}, shell(standard)},
		"text, left":   {of("", field("u", kinds.OfText, Leave), field("v", kinds.Subtype3, Convert("javaLegacy"))), where("u", canonical), nil, ""},
		"left":         {of("", field("u", kinds.Subtype3, Leave), field("v", kinds.Subtype3, Convert("javaLegacy"))), where("u", java), nil, ""},
		"other stored": {of("", field("u", kinds.Subtype0, Convert("generic"))), where("u", java), nil, ""},
		"standard":     {of("", field("u", kinds.Subtype3, Convert("javaLegacy"))), where("u", standard), nil, ""},
		"unknown":      {of("", field("u", kinds.Subtype3, Unknown)), where("u", java), all, shell(standard)},
		"no values":    {of("", field("v", kinds.Subtype3, Convert("javaLegacy"))), where("u", java), all, shell(standard)},
		"the same in every order": {of("", field("v", kinds.Subtype3, Convert("javaLegacy"))), where("u", bson.Binary{Subtype: 3, Data: make([]byte, 16)}), []string{""},
			shell(bson.Binary{Subtype: 4, Data: make([]byte, 16)})},
		"two filters": {append(of("", field("u", kinds.Subtype3, Convert("javaLegacy"))), Collection{Name: "c", Filter: "{}", Fields: []Field{field("u", kinds.Subtype3, Convert("csharpLegacy"))}}),
			where("u", java), []string{"javaLegacy", "csharpLegacy"}, shell(standard)},
	} {
		p := &Plan{Database: "d", Collections: tt.collections}
		got := p.Rewrite(constants.Definitions{tt.d})
		if tt.from == nil {
			if len(got) > 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		var from []string
		for _, r := range got {
			for _, b := range r.Becomes {
				from = append(from, b.From)
			}
		}
		if !slices.Equal(from, tt.from) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if is := got[0].Becomes[max(0, len(from)-2)].Is; is != tt.is {
			t.Errorf("%s: got %s, want %s", name, is, tt.is)
		}
		if names := p.Unaccepted(got); !slices.Equal(names, []string{`validator of "c"`}) {
			t.Errorf("%s: %q", name, names)
		}
		p.Definitions = []Definition{{Of: got[0].Of, Is: got[0].Is, Accepted: true}}
		if names := p.Unaccepted(got); len(names) > 0 {
			t.Errorf("%s: %q", name, names)
		}
	}
}

// The commands are about the copy of a collection, if it has one, and to be run at another time.
func TestRewriteOfCopy(t *testing.T) {
	p := &Plan{Database: "d", Collections: []Collection{{Name: "c", Into: "c2", Fields: []Field{{Path: "u", Stored: kinds.Subtype3, Decision: Convert("javaLegacy")}}}}}
	where := bson.D{{Key: "u", Value: kindstest.Value("javaLegacy")}}
	is := func(v any) bson.RawValue { return kindstest.Marshal(t, bson.D{{Key: "v", Value: v}}).Lookup("v") }
	pipeline := is(bson.A{bson.D{{Key: "$match", Value: where}}})
	index := kindstest.Marshal(t, bson.D{{Key: "v", Value: 2}, {Key: "key", Value: bson.D{{Key: "u", Value: 1}}}, {Key: "name", Value: "i"}, {Key: "partialFilterExpression", Value: where}})
	got := p.Rewrite(constants.Definitions{
		{Of: constants.View, Name: "v", On: "c", Is: pipeline},
		{Of: constants.View, Name: "w", On: "v", Is: pipeline},
		{Of: constants.View, Name: "x", On: "other", Is: pipeline},
		{Of: constants.Validator, Name: "c", Is: is(where), All: kindstest.Marshal(t, bson.D{{Key: "validator", Value: where}, {Key: "validationAction", Value: "warn"}})},
		{Of: constants.Index, Name: "c", Index: "i", Is: is(where), All: index},
	})
	const fresh = `{u: BinData(4, "ABEiM0RVZneImaq7zN3u/w==")}`
	for i, want := range []struct{ when, command string }{
		{"after bsonids cutover", `{collMod: "v", viewOn: "c", pipeline: [{$match: ` + fresh + `}]}`},
		{"after bsonids cutover", `{collMod: "w", viewOn: "v"`},
		{"when bsonids apply is done: ", `{collMod: "x"`},
		{"before bsonids apply --write, which then copies into it", `createCollection("c2", {validator: ` + fresh + `, validationAction: "warn"})`},
		{"when bsonids apply has made the copy, before bsonids cutover", `{createIndexes: "c2", indexes: [{key: {u: 1}, name: "i", partialFilterExpression: ` + fresh + `}]}`},
	} {
		if i >= len(got) || !strings.HasPrefix(got[i].When, want.when) || !strings.Contains(strings.Join(got[i].Becomes[0].Commands, "; "), want.command) {
			t.Errorf("%d: got %+v, want %+v", i, got, want)
		}
	}
}

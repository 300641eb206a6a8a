package plan

import (
	"regexp"
	"strings"
	"testing"
)

// fieldsOf has what a field in the text of a test stands for.
var fieldsOf = map[string]string{
	"java":        "stored: subtype 3, decision: convert from javaLegacy, evidence: [{order: javaLegacy, by: evidence, versions: [4]}]",
	"left":        "stored: subtype 3, decision: leave, evidence: [{order: javaLegacy, by: evidence, versions: [4]}]",
	"java14":      "stored: subtype 3, decision: convert from javaLegacy, evidence: [{order: javaLegacy, by: evidence, versions: [1, 4]}]",
	"noJava":      "stored: subtype 3, decision: unknown, evidence: [{order: javaLegacy, by: none}]",
	"unknown":     "stored: subtype 3, decision: unknown, evidence: [{order: javaLegacy, by: evidence, versions: [4]}]",
	"csharpToo":   "stored: subtype 3, decision: convert from csharpLegacy, evidence: [{order: csharpLegacy, by: evidence, versions: [4]}]",
	"noOrder":     "stored: subtype 3, decision: leave, evidence: [{order: csharpLegacy, by: none}, {order: javaLegacy, by: none}]",
	"beside":      "stored: subtype 3, decision: leave, evidence: [{order: javaLegacy, by: evidence, against: [csharpLegacy]}]",
	"both":        "stored: subtype 3, decision: leave, evidence: [{order: csharpLegacy, by: evidence}, {order: javaLegacy, by: evidence}]",
	"equal":       "stored: subtype 3, decision: leave, evidence: [{order: csharpLegacy, by: none}, {order: javaLegacy, by: equality}]",
	"csharp":      "stored: subtype 3, decision: leave, evidence: [{order: csharpLegacy, by: evidence, versions: [4]}]",
	"trustedJava": "stored: subtype 3, decision: convert from javaLegacy, trust: true, evidence: [{order: javaLegacy, by: evidence, versions: [4]}]",
	"leftText":    "stored: text, decision: leave",
	"std":         "stored: subtype 4, decision: leave",
	"generic":     "stored: subtype 0, decision: convert from generic, evidence: [{order: generic, by: evidence, versions: [4]}]",
	"zero":        "stored: subtype 0, decision: leave",
	"binaryText":  "stored: binaryText, decision: convert from binaryText, evidence: [{order: binaryText, by: evidence, versions: [4]}]",
	"malformed":   "stored: malformed, decision: list",
	"okMalformed": "stored: malformed, decision: leave",
	"text":        "stored: text, decision: convert from text, evidence: [{order: text, by: evidence, versions: [4]}]",
	"noText":      "stored: text, decision: convert from text, evidence: [{order: text, by: none}]",
	"trusted":     "stored: text, decision: convert from text, trust: true, evidence: [{order: text, by: none}]",
	"struct":      "stored: goStruct, decision: convert from goStruct, evidence: [{order: goStruct, by: evidence, versions: [4]}]",
	"doc":         "stored: goStruct, decision: leave",
}

// planOf returns the plan with the text, in which a field is a path and a name of fieldsOf.
func planOf(t *testing.T, text string) *Plan {
	t.Helper()
	if !strings.Contains(text, "dump: ") {
		text = "database: d\n" + text
	}
	field := regexp.MustCompile(`([^\s\[]\S*) \$(\w+)`)
	p, err := Parse([]byte("schemaVersion: 1\nmade: 2026-01-02T03:04:05Z\n" + field.ReplaceAllStringFunc(text, func(s string) string {
		path, name, _ := strings.Cut(s, " $")
		return `{path: "` + path + `", ` + fieldsOf[name] + "}"
	})))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

const (
	aDump = "dump: {path: p, digest: d, evidence: e}\n"
	// Two filters divide a collection.
	filtered = `collections: [{name: o, filter: '{"y": 1}', fields: [c $java]}, {name: u, fields: [id $java]}, {name: o, filter: '{"y": 2}', fields: [c $java]}]`
	// Both ends of a reference are copied.
	copied = `collections: [{name: a, into: a2, fields: [_id $java]}, {name: b, into: b2, fields: [a $java]}]
references: [{between: [a, b], fields: [_id, "a[]"]}]`
	within = `collections: [{name: a, into: a2, fields: [_id $java]}, {name: b, into: b2, fields: [a $struct, a.uuid $zero]}]
references: [{between: [a, b], fields: [_id, a.uuid]}]`
	whole   = "collections: [{name: a, into: a2, fields: [_id $java]}, {name: b, into: b2, fields: [a $java]}]\nreferences: [{between: [a, b]}]"
	outside = "only: [a, b]\ncollections: [{name: a, into: a2, fields: [_id $java]}]\nreferences: [{between: [a, c], fields: [_id, x], outside: [subtype 3]}]"
)

func having(fields string) string { return "collections: [{name: x, fields: [" + fields + "]}]" }

// Whatever a person may write that cannot be carried out is an error, which says what to do.
func TestMayApply(t *testing.T) {
	for _, tt := range []struct {
		name, text, old, is string   // is replaces old in the text
		want                []string // in the error; nil for none
	}{
		{"two filters", filtered, "", "", nil},
		{"a filter and the rest", filtered, `filter: '{"y": 2}', `, "", nil},
		{"a copy with a filter", filtered, `'{"y": 1}'`, `'{"y": 1}', into: new`, []string{"a filter is for a conversion in place"}},
		{"a copy of the rest", filtered, `filter: '{"y": 2}'`, "into: new", []string{"a filter is for a conversion in place"}},
		{"a filter of a dump", aDump + filtered, "", "", []string{"a dump is read as a whole"}},

		{"text and subtype 3", having("a $text, a $java"), "", "", nil},
		{"inside a document", having("u $struct, u.uuid $generic"), "", "", []string{`the values at "u.uuid" are converted with the documents`}},
		{"inside documents of an array", having("u[] $struct, u.uuid $generic"), "", "", []string{`the values at "u.uuid" are converted with the documents`}},
		{"a document and another one", having("v $struct, u.uuid $generic"), "", "", nil},
		{"left inside a document", having("u $struct, u.uuid $zero"), "", "", nil},
		{"no evidence", having("a $noText"), "", "", []string{"nothing in the values tells that they are UUIDs; if you know it, add trust: true"}},
		{"vouched for", having("a $trusted"), "", "", nil},
		{"of an older plan", having("{path: a, stored: text, decision: convert from text}"), "", "", []string{"the plan has no evidence for text: make it again"}},
		{"malformed", having("a $java, a $malformed"), "", "", nil},
		{"malformed, left", having("a $java, a $okMalformed"), "", "", nil},
		{"malformed in _id alone", having("_id $malformed"), "", "", nil},
		{"malformed, converted", having("{path: a, stored: malformed, decision: convert from javaLegacy}"), "", "", []string{"the values are malformed, and only malformed ones are listed"}},
		{"malformed, trusted", having("{path: a, stored: malformed, decision: list, trust: true}"), "", "", []string{"trust of \"a\" means nothing"}},
		{"listed and well", having("{path: a, stored: subtype 3, decision: list}"), "", "", []string{"the values are subtype 3, and only malformed ones are listed"}},
		{"inside a document, malformed", having("u $struct, u.uuid $malformed"), "", "", nil},
		{"a reference beside malformed values", copied, "a $java", "a $java, a $malformed", nil},
		{"wrong form", having("{path: a, stored: goStruct, decision: convert from text}"), "", "", []string{"the values are goStruct, and text is text"}},

		// A conversion does not part the ends of a reference.
		{"both copied", copied, "", "", nil},
		{"one in place", copied, "into: b2, ", "", []string{`line 5: the reference between "a" "_id" (subtype 3, convert from javaLegacy, into "a2")`,
			`"b" "a[]" (subtype 3, convert from javaLegacy, in place)`, "between apply and cutover", "with into or none", "accepted: true"}},
		{"one in place, of a dump", aDump + strings.Replace(copied, "into: a2, ", "", 1), "into: b2, ", "", nil},
		{"copied, with nothing of the reference", copied, "into: b2, fields: [a $java]", "fields: [a $std, y $java]", nil},
		{"both in place", strings.ReplaceAll(copied, "_id", "y"), "into: ", "uuid: ", nil},
		{"a field that is not there", copied, `"a[]"`, "b", []string{`the reference names the field "b" of "b"`}},
		{"a field beyond those that are distinguished", strings.Replace(copied, `"a[]"`, "b", 1), "a $java", `a $java, {path: "(others)", ` + fieldsOf["left"] + "}", []string{"half converted"}},
		{"values of which some are left", copied, "a $java", "a $java, a[] $zero", []string{"half converted", "(subtype 0, leave)"}},
		{"converted with a document", within, "", "", nil},
		{"converted within a document", strings.Replace(within, "$struct", "$doc", 1), "$zero", "$generic", nil},
		{"left in a document", within, "$struct", "$doc", []string{"half converted"}},
		{"collections, both converted", whole, "", "", nil},
		{"collections, both converted, with other fields", whole, "a $java", "a $java, z $left", nil},
		{"collections, one left", whole, "into: b2, fields: [a $java]", "fields: [a $left]", []string{`and "b" (subtype 3, leave)`}},
		{"collections, one standard", whole, "into: b2, fields: [a $java]", "fields: [a $std]", nil},
		{"collections, one in place", whole, "into: b2, ", "", []string{"between apply and cutover"}},
		{"outside", outside, "", "", []string{`"c" "x" (subtype 3, not in the plan)`, `bsonids plan DIR --collection "c"`, "accepted: true"}},
		{"outside, partly converted", outside, "[subtype 3]", "[subtype 4, subtype 0]", []string{"(subtype 0, not in the plan)"}},
		{"outside, standard", outside, "subtype 3", "subtype 4", nil},
		{"outside, text", outside, "subtype 3", "text", nil},
		{"outside, written by a person", outside, ", outside: [subtype 3]", "", []string{"(not known, not in the plan)"}},
		{"outside, of what is left", outside, "into: a2, fields: [_id $java]", "fields: [_id $left]", nil},
		{"both outside", outside, "[a, c]", "[d, c]", []string{`the reference names the collection "d"`}},
		{"nowhere, in a plan of all", outside, "only: [a, b]\n", "", []string{`the reference names the collection "c"`}},
		{"a collection that is not one of only", outside, "[a, b]", "[b]", []string{`"a": the plan is about ["b"] only`}},
	} {
		if tt.old != "" {
			if !strings.Contains(tt.text, tt.old) {
				t.Errorf("%s: no %q", tt.name, tt.old)
			}
			tt.text = strings.ReplaceAll(tt.text, tt.old, tt.is)
		}
		p := planOf(t, tt.text)
		problems := strings.Join(p.Check(), "; ")
		for _, want := range tt.want {
			if !strings.Contains(problems, want) {
				t.Errorf("%s: %s, want %q", tt.name, problems, want)
			}
		}
		if tt.want == nil && problems != "" || strings.Count(problems, "the reference between") > 1 {
			t.Errorf("%s: %s", tt.name, problems)
		}
		for i := range p.References {
			p.References[i].Accepted = true
		}
		if problems := strings.Join(p.Check(), "; "); strings.Contains(problems, "the reference") {
			t.Errorf("%s, accepted: %s", tt.name, problems)
		}
	}
}

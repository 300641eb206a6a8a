package plan

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// ugly has names that a database allows and YAML gives a meaning.
var ugly = []string{"orders", "", " ", "a.b", "null", "yes", "0x1F", "1e3", "-", "- a", "a: b", "#c", "&a", "*a", "!!binary", "%", "@", "`", "a\nb", "\n", "\r\n", "a\tb",
	`"`, `'`, `\`, `\x41`, "ä€😀", "\u202eabc", "\u2028", "\ufeff", "\x7f", "\x01", "\x00", "\xff\xfe", "a\xffb", "\ue000", "\u0085", "{}", "[]", "items[].sku", "true", "~",
	strings.Repeat("x", 2000), "---", "...", "|", ">", "? a", "<<", "2026-01-01", "a #b"}

func example() *Plan {
	return &Plan{
		Database: "shop", Migration: "0123456789abcdef", Made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Comment: []string{"A plan.", "", "of two\nlines"},
		Collections: []Collection{
			{Name: "customers", UUID: "00ff", Into: "customers_standard", Comment: []string{"40 documents"}, Fields: []Field{
				{Path: "_id", Stored: kinds.Subtype3, Decision: Convert("csharpLegacy"), Evidence: []Evidence{
					{Order: "csharpLegacy", By: decide.Evidence, Versions: []int{1, 4}, Against: []string{"javaLegacy"}}, {Order: "javaLegacy", By: decide.None}}},
			}},
			{Name: "orders", Fields: []Field{
				{Path: "items[].sku", Stored: kinds.Subtype3, Decision: Unknown},
				{Path: "items[].sku", Stored: kinds.Subtype4, Decision: Leave, Comment: []string{"nothing"}},
				{Path: "note", Stored: kinds.OfText, Decision: Leave},
				{Path: "x", Stored: kinds.Subtype0, Decision: Convert("generic"), Trust: true},
			}},
			{Name: "empty"},
		},
		References: []Reference{{Between: [2]string{"customers", "orders"}, Fields: []string{"_id", "customer"}}, {Between: [2]string{"orders", "empty"}}},
	}
}

// bare returns the plan without comments and lines.
func bare(p *Plan) *Plan {
	q := *p
	q.Comment, q.ReferencesComment, q.Collections, q.References = nil, nil, nil, nil
	for _, c := range p.Collections {
		c.Comment, c.Line = nil, 0
		var fields []Field
		for _, f := range c.Fields {
			f.Comment, f.Line = nil, 0
			fields = append(fields, f)
		}
		c.Fields = fields
		q.Collections = append(q.Collections, c)
	}
	for _, r := range p.References {
		r.Comment, r.Line = nil, 0
		q.References = append(q.References, r)
	}
	return &q
}

// What is read is what was written, whatever the names are.
func TestWriteAndParse(t *testing.T) {
	check := func(p *Plan) {
		t.Helper()
		text := p.Text()
		for i, r := range string(text) {
			if r != '\n' && (r < ' ' || r == 0x7f) {
				t.Errorf("the plan has the character %q at %d", r, i)
			}
		}
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(bare(got), bare(p)) || got.Digest() != p.Digest() || len(Changes(p, got)) > 0 {
			t.Errorf("got %+v\nwant %+v", bare(got), bare(p))
		}
	}
	check(example())
	scoped := example()
	scoped.Only = []string{"orders", "customers", "empty"}
	scoped.References = append(scoped.References, Reference{Between: [2]string{"orders", "users"}, Fields: []string{"x", "_id"},
		Outside: []kinds.Stored{kinds.Subtype3, kinds.OfText}, Accepted: true})
	check(scoped)
	check(&Plan{Database: "x", Made: time.Unix(0, 0).UTC()})
	p := &Plan{Database: "x", Made: time.Unix(0, 0).UTC()}
	for i, name := range ugly {
		c := Collection{Name: name, Comment: []string{name}, Fields: []Field{{Path: name, Stored: kinds.Subtype3, Decision: Leave, Comment: []string{name},
			Evidence: []Evidence{{Order: "javaLegacy", By: decide.None, Against: []string{name}}}}}}
		if name != "" {
			c.Into = name
		}
		p.Collections = append(p.Collections, c)
		if i > 0 {
			p.References = append(p.References, Reference{Between: [2]string{ugly[i-1], name}, Fields: []string{name, name}, Comment: []string{name}})
		}
	}
	check(p)
}

// Each mistake is an error with its line.
func TestParseErrors(t *testing.T) {
	const good = `schemaVersion: 1
database: "shop"
made: 2026-01-02T03:04:05Z
collections:
  - name: "orders"
    fields:
      - path: "customer"
        stored: subtype 3
        decision: convert from javaLegacy
        evidence:
          - {order: javaLegacy, by: evidence, versions: [4]}
  - name: "customers"
    fields: []
references:
  - between: ["customers", "orders"]
    fields: ["_id", "customer"]
`
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse([]byte(strings.Replace(good, `"customers", "orders"`, `"orders", "orders"`, 1))); err != nil {
		t.Error(err)
	}
	type mistake struct{ old, new, want string }
	mistakes := []mistake{
		{"schemaVersion: 1", "schemaVersion: 2", "line 1: the plan has schemaVersion 2, and this program reads 1"},
		{"schemaVersion: 1", `schemaVersion: "1"`, `line 1: schemaVersion must be a whole number, and is "1"`},
		{"schemaVersion: 1\n", "", `line 1: the plan has no "schemaVersion"`},
		{`database: "shop"`, "database: 7", `line 2: database must be text, and is "7"`},
		{`database: "shop"`, "database:", `line 2: database must be text, and is nothing`},
		{`database: "shop"`, "database: \"shop\"\nto: standard", `line 3: the plan has an unknown key "to"`},
		{`database: "shop"`, "database: \"shop\"\ndatabase: \"shop\"", `line 3: the plan has "database" twice`},
		{"2026-01-02T03:04:05Z", "yesterday", "line 3: made must be a time"},
		{`  - name: "customers"`, `  - name: "orders"`, `line 12: the collection "orders" is listed twice`},
		{`path: "customer"`, `path: [customer]`, "line 7: path must be text, and is a list"},
		{"stored: subtype 3", "stored: 3", `line 8: stored must be text, and is "3"`},
		{"stored: subtype 3", "stored: subtype 5", "line 8: stored: must be one of"},
		{"decision: convert from javaLegacy", "decision: convert from java", `line 9: decision: invalid representation "java"`},
		{"decision: convert from javaLegacy", "decision: keep", "line 9: decision: must be leave, list, unknown, or convert from X"},
		{"decision: convert from javaLegacy", "decision: leave\n        trust: yes", `line 10: trust must be true or false, and is "yes"`},
		{"decision: convert from javaLegacy", "# nothing", `line 7: a field has no "decision"`},
		{"versions: [4]", "versions: [9]", "line 11: a version must be from 1 to 8"},
		{"versions: [4]", "versions: 4", `line 11: versions must be a list, and is "4"`},
		{"by: evidence", "by: guess", "line 11: by: must be one of"},
		{`between: ["customers", "orders"]`, "between: [orders, orders]\n    fields: [a, \"a[]\"]\n  - between: [x, y]", "line 15: between must name two collections, or fields two of the one collection"},
		{`between: ["customers", "orders"]`, `between: ["orders"]`, "line 15: between must have two names"},
		{`fields: ["_id", "customer"]`, `fields: ["_id"]`, "line 16: fields must have two names"},
		{`- name: "orders"`, `- &a {name: "x", fields: []}` + "\n  - *a\n" + `  - name: "orders"`, "line 5: a collection has an anchor"},
		{`fields: []`, "fields: []\n---\n{}", "line 14: the file has more than one document"},
		{`  - name: "customers"`, "  - customers\n" + `  - name: "customers"`, `line 12: a collection must be a mapping, and is "customers"`},
		{"    fields: []", "\tfields: []", "line 13"},
		{"collections:", "only: []\ncollections:", "line 4: only names nothing"},
		{"collections:", "only: orders\ncollections:", `line 4: only must be a list, and is "orders"`},
		{`fields: ["_id", "customer"]`, `outside: [subtype 5]`, "line 16: outside: must be one of"},
		{`fields: ["_id", "customer"]`, `accepted: yes`, `line 16: accepted must be true or false, and is "yes"`},
		{good, "", "the file is empty"},
		{good, "[]", "line 1: the plan must be a mapping, and is a list"},
		{good, `{"bsonids":"undo log 1"}`, "line 1"},
	}
	for filter, want := range map[string]string{
		`""`: "filter is empty", `'[]'`: "must be a filter", `'{"a": 1} x'`: "must be a filter", `'{"a": {"$oid": 1}}'`: "invalid extended JSON", `{"year": 2019}`: "must be text",
		`'{"year": 2018, "year": 2021}'`: `"year" is there twice`, `'{"$or": [{"a": 1}, {"a": {"$gt": 1, "$gt": 2}}]}'`: `"$gt" is there twice`,
		`'{"year": 2020}'` + "\n    fields: []\n  - name: customers\n    filter: '{ \"year\": 2020 }'": "listed twice",
	} {
		mistakes = append(mistakes, mistake{`  - name: "customers"`, `  - name: "customers"` + "\n    filter: " + filter, want})
	}
	for _, tt := range mistakes {
		_, err := Parse([]byte(strings.Replace(good, tt.old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.new, err, tt.want)
		}
	}
	// The second one of a path with brackets and without.
	twice := strings.Replace(good, "  - name: \"customers\"", "      - {path: \"customer[]\", stored: subtype 3, decision: leave}\n  - name: \"customers\"", 1)
	if _, err := Parse([]byte(twice)); err == nil || !strings.Contains(err.Error(), `line 12: the field "customer[]" (subtype 3) is listed twice`) {
		t.Error(err)
	}
}

// What is written in another spelling is the same plan, and an update keeps the spelling.
func TestSpelling(t *testing.T) {
	p := planOf(t, `collections: [{name: a, filter: '{"year": 2019}', fields: [x $java]}, {name: b, fields: [y $left]}]`)
	text := string(p.Text())
	filter := "filter: " + Quote(`{"year":{"$numberInt":"2019"}}`)
	for _, tt := range [][2]string{
		{filter, `filter: '{ "year": 2019 }' # of the old shop`}, {"decision: leave", "decision: Leave"}} {
		edited := strings.Replace(text, tt[0], tt[1], 1)
		q, err := Parse([]byte(edited))
		if err != nil || edited == text || q.Digest() != p.Digest() || len(Changes(p, q)) > 0 {
			t.Errorf("%s: %v", edited, err)
		}
		_, got, notes, err := update([]byte(edited), func() *Plan { return p }, nil, nil, nil)
		if err != nil || string(got) != edited || len(notes) > 0 {
			t.Errorf("%s, %q, %v", got, notes, err)
		}
	}
}

// A decision is the same in any letter case: values of one order are one step, however a person wrote it.
func TestParseDecision(t *testing.T) {
	for s, want := range map[string]Decision{
		"leave": Leave, "Leave": Leave, "UNKNOWN": Unknown,
		"LIST": List, "convert from JAVALEGACY": Convert("javaLegacy"), "Convert From gostruct": Convert("goStruct"), "convert from Text": Convert("text"),
	} {
		if got, err := parseDecision(s); err != nil || got != want {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "convert", "convert from", "convert from ", "convert from to text", "convert from text to", "leave ", "convert to javaLegacy", "convert from standard", "convert from javaLegacy to text"} {
		if got, err := parseDecision(s); err == nil {
			t.Errorf("%q: %q", s, got)
		}
	}
}

// Whatever is read, can be written and read again, and says the same.
func FuzzParse(f *testing.F) {
	f.Add(example().Text())
	f.Add([]byte("schemaVersion: 1\ndatabase: a\nmade: 2026-01-02T03:04:05+02:00\ncollections: [{name: !!binary \"/w==\", fields: []}]\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("schemaVersion: 1\n<<: {a: b}\n"))
	for _, name := range ugly {
		f.Add((&Plan{Database: name, Collections: []Collection{{Name: name}}}).Text())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		p.Check()
		p.Steps()
		again, err := Parse(p.Text())
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Text())
		}
		if d := Changes(p, again); len(d) > 0 {
			t.Fatalf("%s\n%s", d, p.Text())
		}
	})
}

// Read returns an error for what is not a file. It does not wait for a pipe that nobody writes to.
func TestReadOfNoFile(t *testing.T) {
	if _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

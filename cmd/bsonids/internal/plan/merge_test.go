package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

const (
	shop = `collections: [{name: orders, uuid: "01", fields: [customer $java, note $leftText]}, {name: files, uuid: "02", fields: [md5 $unknown]}]
references: [{between: [orders, files], fields: [customer, md5]}]`
	shopSince = `collections: [{name: orders, uuid: "01", fields: [customer $java14, note $leftText, seller $java, seller $leftText]},
  {name: users, into: users_standard, fields: [_id $java]}]
references: [{between: [orders, users], fields: [customer, _id]}]`
	inCsharp = `collections: [{name: orders, uuid: "01", fields: [customer $java]}, {name: files, uuid: "02", into: files_csharp, fields: [md5 $java]}]`
	// What was converted, and a collection that a cutover has exchanged.
	inCsharpSince = `collections: [{name: orders, uuid: "01", fields: [customer $csharp]}, {name: files, uuid: "99", fields: [other $java]},
  {name: files_csharp, fields: [md5 $java]}]
references: [{between: [orders, files_csharp]}]`
	scoped = `only: [files, orders]
collections: [{name: orders, uuid: "01", fields: [customer $java]}, {name: files, uuid: "02", fields: [md5 $unknown]}]
references: [{between: [orders, users], fields: [customer, _id], outside: [subtype 3]}, {between: [orders, visits], fields: [customer, of], outside: [subtype 3]}]`
	scopedSince = `only: [files, orders]
collections: [{name: orders, uuid: "01", fields: [customer $java]}, {name: files, uuid: "02", fields: [md5 $unknown]}]
references: [{between: [orders, users], fields: [customer, _id], outside: [subtype 3]}, {between: [orders, visits], fields: [customer, of], outside: [subtype 4]},
  {between: [files, visits], fields: [md5, file], outside: [text]}]`
	scopedAdds = `only: [files, orders, users]
collections: [{name: orders, uuid: "01", into: orders_standard, fields: [customer $java]}, {name: files, uuid: "02", into: files_standard, fields: [md5 $unknown]},
  {name: users, into: users_standard, fields: [_id $java]}]
references: [{between: [users, orders], fields: [_id, customer]}, {between: [orders, visits], fields: [customer, of], outside: [subtype 3]}]`
)

// An update changes what it must and says so. What is new comes in as unknown, but what a person adds as the survey
// suggests it. Decisions stay, also those of what is gone, and what is converted is not judged again.
func TestUpdate(t *testing.T) {
	added := []string{`only was ["files", "orders"] and is ["files", "orders", "users"]`, `the collection "users" was added`,
		`the reference between "orders" "customer" and "users" "_id": outside was [subtype 3] and is none`}
	copied := slices.Insert(slices.Clone(added), 1, `the collection "orders": into was none and is "orders_standard"`)
	for _, tt := range []struct {
		name, plan, old, is, fresh string // is replaces old in the plan
		adds                       []string
		begun                      int // steps
		changes, notes             []string
	}{
		{"nothing new", shop, "", "", shop, nil, 0, nil, nil},
		{"new and gone", shop, "", "", shopSince, nil, 0, []string{
			`the collection "orders": the field "customer" (subtype 3): evidence was [{order: javaLegacy, by: evidence, versions: [4]}] and is [{order: javaLegacy, by: evidence, versions: [1, 4]}]`,
			`the collection "orders": the field "seller" (subtype 3) was added`, `the collection "orders": the field "seller" (text) was added`,
			`the collection "users" was added`, `the reference between "orders" "customer" and "users" "_id" was added`,
		}, []string{
			`"files": the collection is gone, or has no UUIDs any more: remove it from the plan`,
			`"orders": the evidence of "customer" (subtype 3) was [{order: javaLegacy, by: evidence, versions: [4]}] and is [{order: javaLegacy, by: evidence, versions: [1, 4]}]`,
			`"orders": the field "seller" (subtype 3) is new`, `"orders": the field "seller" (text) is new`, `"users": the collection is new`,
			`the reference between "orders" "customer" and "users" "_id" is new`,
		}},
		{"a field that is gone", shop, "customer $java", "customer $java, gone $java", shop, nil, 0, nil, []string{`"orders": the field "gone" (subtype 3) is gone`}},
		{"malformed values that are new", "collections: [{name: a, fields: [x $java]}]", "", "", "collections: [{name: a, fields: [x $java, x $malformed]}]", nil, 0,
			[]string{`the collection "a": the field "x" (malformed) was added`}, []string{`"a": the field "x" (malformed) is new`}},
		{"malformed values that are left", "collections: [{name: a, fields: [x $java, x $okMalformed]}]", "", "", "collections: [{name: a, fields: [x $java, x $malformed]}]", nil, 0, nil, nil},
		{"a reference that a person has removed", shop, "{between: [orders, files], fields: [customer, md5]}", "", shop, nil, 0, nil, nil},
		{"of nothing", "collections: []\nreferences: []", "", "", shop, nil, 0,
			[]string{`the collection "orders" was added`, `the collection "files" was added`, `the reference between "files" "md5" and "orders" "customer" was added`},
			[]string{`"files": the collection is new`, `"orders": the collection is new`, `the reference between "files" "md5" and "orders" "customer" is new`}},
		{"after all has begun", inCsharp, "", "", inCsharpSince, nil, 2, nil, nil},
		{"another collection with the name", inCsharp, "", "", inCsharpSince, nil, 1,
			[]string{`the collection "files_csharp" was added`, `the reference between "files_csharp" and "orders" was added`}, []string{
				`"files": another collection has the name; remove it from the plan, and run bsonids plan again`, `"files_csharp": the collection is new`,
				`the reference between "files_csharp" and "orders" is new`}},
		{"how others store the values", scoped, "", "", scopedSince, nil, 0, []string{
			`the reference between "orders" "customer" and "visits" "of": outside was [subtype 3] and is [subtype 4]`, `the reference between "files" "md5" and "visits" "file" was added`,
		}, []string{`the reference between "files" "md5" and "visits" "file" is new`}},
		{"added, and copied with others", scoped, "", "", scopedAdds, []string{"users"}, 0, copied,
			[]string{`"orders": it is copied now, with those that refer to each other`, `"users": the collection is added`}},
		{"added, and copied from two representations", scoped, "customer $java", "customer $java, g $generic", scopedAdds, []string{"users"}, 0, copied,
			[]string{`"orders": it is copied now, with those that refer to each other`, `"orders": the field "g" (subtype 0) is gone`, `"users": the collection is added`}},
		{"added in another group", scoped, "", "", strings.Replace(scopedAdds, "[users, orders]", "[users, others]", 1), []string{"users"}, 0,
			append(slices.Clone(added), `the reference between "others" "customer" and "users" "_id" was added`),
			[]string{`"users": the collection is added`, `the reference between "others" "customer" and "users" "_id" is new`}},
		{"added to what a person accepted", scoped, "[customer, _id]", "[customer, _id], accepted: true", scopedAdds, []string{"users"}, 0, added, []string{`"users": the collection is added`}},
		{"added to what was changed in place", scoped, "", "", scopedAdds, []string{"users"}, 1, added, []string{`"users": the collection is added`}},
	} {
		if tt.old != "" {
			tt.plan = strings.Replace(tt.plan, tt.old, tt.is, 1)
		}
		p, fresh := planOf(t, tt.plan), planOf(t, tt.fresh)
		fresh.Made = time.Unix(1e9, 0).UTC()
		text := p.Text()
		updated, out, notes, err := update(text, func() *Plan { return planOf(t, tt.fresh) }, nil, p.Steps()[:tt.begun], tt.adds)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		is, err := Parse(out)
		if err != nil || is.Digest() != updated.Digest() {
			t.Fatalf("%s: %v\n%s", tt.name, err, out)
		}
		if changes := Changes(p, is); !slices.Equal(changes, tt.changes) || !slices.Equal(notes, tt.notes) {
			t.Errorf("%s: %q, and %q", tt.name, changes, notes)
		}
		for _, c := range is.Collections {
			for _, f := range c.Fields {
				if i := p.find(c.Entry()); (i < 0 || p.Collections[i].find(f) < 0) && f.Stored == kinds.Subtype3 && (f.Decision != Unknown || c.Into != "") && !slices.Contains(tt.adds, c.Name) {
					t.Errorf("%s: %s %s is new: %s", tt.name, c.Entry(), f, f.Decision)
				}
			}
		}
		// Once more changes nothing.
		if _, again, _, err := update(out, func() *Plan { return planOf(t, tt.fresh) }, nil, p.Steps()[:tt.begun], nil); err != nil || string(again) != string(out) {
			t.Errorf("%s: %v\n%s", tt.name, err, again)
		}
	}
}

// The old collection of a cutover, which has its name since the plan was made, comes in as left, so that the plan can be applied.
func TestUpdateKept(t *testing.T) {
	p := planOf(t, shop)
	is, _, notes, err := update(p.Text(), func() *Plan {
		fresh := planOf(t, shop)
		old := Collection{Name: "orders_before_cutover", UUID: "09", kept: true, Fields: slices.Clone(fresh.Collections[fresh.find(Entry{"orders", ""})].Fields)}
		for i := range old.Fields {
			old.Fields[i].Decision = Leave
		}
		fresh.Collections = append(fresh.Collections, old)
		return fresh
	}, nil, nil, nil)
	if err != nil || len(notes) != 1 {
		t.Fatal(notes, err)
	}
	i := is.find(Entry{"orders_before_cutover", ""})
	if i < 0 {
		t.Fatal(is.Collections)
	}
	for _, f := range is.Collections[i].Fields {
		if f.Decision != Leave {
			t.Errorf("%s: %s", f, f.Decision)
		}
	}
}

// Every line of before is there after an update, in the same order, but those that must change. Lists get elements also
// if they are empty or not there. A plan in another layout is either changed as it must be, or not at all.
func TestUpdateLayout(t *testing.T) {
	p := planOf(t, shop)
	p.Comment, p.Collections[0].Comment = []string{"A plan."}, []string{"10 documents"}
	text := string(p.Text())
	for _, r := range [][2]string{
		{"decision: unknown", "decision: LEAVE # checksums, says Ann"}, {"  - name: \"files\"", "  # The files of the web site.\n  - name: \"files\""},
		{"made:", "# Reviewed on Monday.\n\n\nmade:"}, {"references:\n", "references: # both are old\n"},
	} {
		text = strings.Replace(text, r[0], r[1], 1)
	}
	fresh := func() *Plan { return planOf(t, shopSince) }
	_, got, _, err := update([]byte(text), fresh, nil, nil, nil)
	if err != nil || !strings.Contains(string(got), "# new: the survey suggests: convert from javaLegacy") {
		t.Fatalf("%v\n%s", err, got)
	}
	rest := strings.Split(string(got), "\n")
	for _, l := range strings.Split(text, "\n") {
		if i := slices.Index(rest, l); i >= 0 && !strings.Contains(l, "{order:") {
			rest = rest[i+1:]
		} else if i < 0 {
			t.Fatalf("the line %q is gone:\n%s", l, got)
		}
	}
	empty := string(planOf(t, "collections: []").Text())
	flow := `{"schemaVersion": 1, "database": "shop", "made": 1970-01-01T00:00:00Z, "collections": [{"name": "orders", "uuid": "01", "fields": []}]}`
	for _, text := range []string{empty, strings.Replace(empty, "references: []\n", "", 1), flow, strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(text, "\n      ", "\n        "),
		strings.ReplaceAll(text, "\n  ", "\n "), strings.Replace(text, "    fields:\n", "    fields: # all\n\n", 1)} {
		_, b, _, err := update([]byte(text), fresh, nil, nil, nil)
		if err != nil {
			if !errors.Is(err, ErrLayout) || strings.HasPrefix(text, empty[:40]) {
				t.Errorf("%v\n%s", err, text)
			}
			continue
		}
		p, err := Parse(b)
		if err != nil || len(p.References) == 0 || p.Collections[0].find(java("seller")) < 0 || strings.Contains(text, "Ann") && !strings.Contains(string(b), "Ann") {
			t.Errorf("%v\n%s", err, b)
		}
	}
}

// The comment about the plan describes it as it is after the edit, with the time that the last survey took. What a
// person has written there stays, and a person who has removed its end does not get it back.
func TestUpdateHead(t *testing.T) {
	about := func(p *Plan, documents int64) []string {
		q := *p
		q.Comment = nil
		(&builder{survey: &survey.Survey{Collections: []survey.Collection{{Took: time.Second, Documents: documents}}}}).describe(&q)
		return q.Comment
	}
	p := planOf(t, shop)
	p.Comment = about(p, 10)
	old := string(p.Text())
	for _, has := range []string{"to read 10 documents", "orders: 1 field from javaLegacy"} {
		if !strings.Contains(old, has) {
			t.Fatalf("no %q in %s", has, old)
		}
	}
	text := strings.Replace("# By Ann.\n"+old, "# It took", "# Ask Bob before you\n#   apply it: 2 of us decide.\n# It took", 1)
	text = strings.Replace(text, "decision: unknown", "decision: convert from javaLegacy", 1)
	is, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := string(withHead([]byte(text), about(is, 77)))
	head, rest, _ := strings.Cut(got, "schemaVersion")
	_, wanted, _ := strings.Cut(text, "schemaVersion")
	if rest != wanted {
		t.Errorf("the plan has changed: %s", got)
	}
	for has, n := range map[string]int{"# By Ann.\n# A plan to convert": 1, "to read 77 documents": 1, "to read 10": 0, "# It took": 1, "# group": strings.Count(strings.Join(about(is, 1), "\n"), "group "),
		"# orders: 1": 0, "files: 1 field from javaLegacy": 1, "orders: 1 field from javaLegacy": 1, "# Ask Bob before you\n#   apply it: 2 of us decide.\n": 1, headLast: 1} {
		if strings.Count(head, has) != n {
			t.Errorf("%q is there %d times, want %d, in %s", has, strings.Count(head, has), n, head)
		}
	}
	if again := string(withHead([]byte(got), about(is, 77))); strings.Count(again, "Bob") != 1 || strings.Count(again, "It took") != 1 {
		t.Error(again)
	}
	cut := strings.Replace(text, headLast, "", 1)
	if string(withHead([]byte(cut), about(is, 77))) != cut {
		t.Error("a comment that a person has removed is there again")
	}
}

package servertest

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// spelling writes a UUID in the n-th of its usual spellings.
func spelling(u uuid.UUID, n int) string {
	s := []string{u.String(), hex.EncodeToString(u[:]), "{" + u.String() + "}", u.URN()}[n%4]
	if n%8 >= 4 {
		s = strings.ToUpper(s)
	}
	return s
}

// embeds is a struct that the driver writes as a document.
type embeds struct{ uuid.UUID }

// binaryText returns the n-th of the binary values that programs have made of the text of a UUID.
func binaryText(u uuid.UUID, n int) bson.Binary {
	b := bson.Binary{Subtype: []byte{3, 0, 3, 4, 2}[n%5], Data: []byte(u.String())}
	if n%5 == 2 {
		b.Data = []byte(hex.EncodeToString(u[:]))
	}
	if n%4 == 1 {
		b.Data = bytes.ToUpper(b.Data)
	}
	return b
}

// user returns the i-th of the forms in which the driver writes structs without a codec, and what becomes of it.
func user(u uuid.UUID, i int) (old, converted any) {
	switch i % 5 {
	case 1:
		return embeds{u}, in(u, uuidrep.Standard)
	case 2:
		return uuid.NullUUID{}, nil
	case 3: // its value was converted
		return bson.D{{Key: "uuid", Value: in(u, uuidrep.Standard)}, {Key: "valid", Value: true}}, in(u, uuidrep.Standard)
	}
	return uuid.NullUUID{UUID: u, Valid: true}, in(u, uuidrep.Standard)
}

// Text and documents of Go structs become UUIDs, or null, in the fields that a person decides about, and binary values become text
// in its canonical spelling. All are restored as they were, spellings too.
func TestForms(t *testing.T) {
	for name, tt := range map[string]struct {
		changes []func(*plan.Plan)
		doc     func(i int, u, v uuid.UUID) (old, converted bson.D)
		scan    []string // what scan shows
		counts  []string
	}{
		"text to standard": {[]func(*plan.Plan){convertFields("text", "customer", "items.sku"), accepted}, func(i int, u, v uuid.UUID) (old, converted bson.D) {
			doc := func(customer, item any) bson.D {
				return bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: customer}, {Key: "note", Value: u.String()},
					{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: item}}, bson.D{{Key: "n", Value: "1"}}}}}
			}
			return doc(spelling(u, i), spelling(v, i/8)), doc(in(u, uuidrep.Standard), in(v, uuidrep.Standard))
		}, nil, []string{`"values": 128`, `"documents": 64`}},
		"goStruct to standard": {[]func(*plan.Plan){convertFields("goStruct", "customer", "friends"), accepted}, func(i int, u, v uuid.UUID) (old, converted bson.D) {
			doc := func(customer, friend any) bson.D {
				return bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: customer}, {Key: "friends", Value: bson.A{friend, nil, "x"}}, {Key: "other", Value: embeds{u}}}
			}
			was, is := user(u, i)
			return doc(was, embeds{v}), doc(is, in(v, uuidrep.Standard))
		}, []string{"Go structs", "customer.uuid", `"goStructs": 51`}, []string{`"values": 128`, `"documents": 64`}},
		// As programs have written it: Doctrine of PHP with its type bin_uuid, Mongoose with its type Buffer, and old versions of
		// Spring from the text without hyphens. Both fields also have other data.
		"binaryText to standard": {[]func(*plan.Plan){convertFields("binaryText", "customer", "friends"), accepted}, func(i int, u, v uuid.UUID) (old, converted bson.D) {
			doc := func(customer, friend any) bson.D {
				return bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: customer}, {Key: "other", Value: bson.Binary{Subtype: 3, Data: []byte(u.String())}},
					{Key: "friends", Value: bson.A{friend, nil, "x", bson.Binary{Data: make([]byte, 36)}, bson.Binary{Subtype: 5, Data: []byte(v.String())}}}}
			}
			return doc(binaryText(u, i), binaryText(v, i/8)), doc(in(u, uuidrep.Standard), in(v, uuidrep.Standard))
		}, []string{"text in binary", `"binaryText": 64`, `"uuidDigits": 16`}, []string{`"values": 128`, `"documents": 64`}},
	} {
		t.Run(name, func(t *testing.T) {
			c := pairs(t, 64, func(i int) (old, converted bson.D) { return tt.doc(i, uuid.New(), uuid.New()) }, tt.changes...)
			table := command(t, c.s, "scan", "--db", c.db.Name(), "--all").want(t, failure.ExitOK).stdout
			json := command(t, c.s, "scan", "--db", c.db.Name(), "--all", "--output", "json").want(t, failure.ExitOK).stdout
			result{stdout: table + json}.prints(t, tt.scan...)
			c.run(failure.ExitOK, "apply").prints(t, name, "dry run")
			c.unchanged()
			c.run(failure.ExitOK, "apply --write --output json").prints(t, tt.counts...)
			c.converted()
			c.run(failure.ExitOK, "verify").prints(t, "64")

			// Another program changes one of the converted values of a document.
			set(t, c.coll, int32(7), "customer", uuid.NewString())
			c.run(failure.ExitIncomplete, "verify")
			set(t, c.coll, int32(7), "customer", c.want[`{"$numberInt":"7"}`].Lookup("customer"))
			for range 2 {
				c.ok("undo --write")
				c.unchanged()
			}

			// Another program removes a field in which undo would restore a value, or a document instead of null.
			c.ok("apply --write")
			if _, err := c.coll.UpdateByID(t.Context(), int32(2), bson.D{{Key: "$unset", Value: bson.D{{Key: "customer", Value: 1}}}}); err != nil {
				t.Fatal(err)
			}
			c.run(failure.ExitIncomplete, "verify")
			c.run(failure.ExitIncomplete, "undo --write")
			got, key := all(t, c.coll), `{"$numberInt":"2"}`
			if _, err := got[key].LookupErr("customer"); err == nil {
				t.Error("a field that was removed is there again")
			}
			delete(got, key)
			delete(c.before, key)
			equal(t, got, c.before)
		})
	}
}

// Text and documents in _id are converted into a new collection. Two spellings of one UUID become one _id, which is a
// conflict: nothing is verified.
func TestFormsInID(t *testing.T) {
	for name, second := range map[string]any{"no conflict": nil, "other values": "b", "the same values": "a", "Go structs": nil, "text in binary": nil} {
		t.Run(name, func(t *testing.T) {
			from := "text"
			switch name {
			case "Go structs":
				from = "goStruct"
			case "text in binary":
				from = "binaryText"
			}
			first := uuid.New()
			c := pairs(t, 31, func(i int) (old, converted bson.D) {
				u, v := uuid.New(), any("a")
				if i == 0 || i == 30 && second != nil { // the other spelling
					u = first
				}
				if i == 30 && second != nil {
					v = second
				}
				id := any(spelling(u, i/30*4))
				switch from {
				case "goStruct":
					id = uuid.NullUUID{UUID: u, Valid: true}
				case "binaryText":
					id = binaryText(u, i)
				}
				return bson.D{{Key: "_id", Value: id}, {Key: "v", Value: v}}, bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, {Key: "v", Value: v}}
			}, convertFields(from, "_id"), intoNew("c"))
			if second == nil {
				c.ok("apply --write", "verify")
				c.converted()
				return
			}
			for _, line := range []string{"apply --write", "verify"} {
				c.run(failure.ExitIncomplete, line).prints(t, "two documents have the same _id")
			}
			c.unchanged()
		})
	}
}

// What is not a UUID, or may be a checksum, is left and listed. Empty strings are left and not listed. What is
// left is converted later if the field is trusted, except for what is no UUID.
func TestTextLeft(t *testing.T) {
	var docs []any
	const odd = "12345678-0000-0000-0000-000000000001" // without variant and version
	special := map[int]string{3: "unknown", 4: odd, 5: "", 6: uuid.Nil.String()}
	for i := range 40 {
		v, ok := special[i]
		if !ok {
			v = uuid.NewString()
		}
		sum := md5.Sum([]byte(v))
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: v}, {Key: "sum", Value: hex.EncodeToString(sum[:])},
			{Key: "digits", Value: spelling(uuid.New(), 1)}, {Key: "other", Value: nil}})
	}
	c := setting(t, docs, convertFields("text", "id", "digits"))
	c.run(failure.ExitIncomplete, "apply --write").prints(t, "does not have the variant and a version of RFC 9562")
	if b := text(t, skipList(t, c.dir)); strings.Count(b, "\n") != 2 || !strings.Contains(b, `"value":"unknown"`) || !strings.Contains(b, odd) {
		t.Error(b)
	}
	converted := func(want map[string]int) {
		t.Helper()
		got := make(map[string]int)
		for _, doc := range all(t, c.coll) {
			for _, field := range []string{"id", "sum", "digits"} {
				if subtype, _, ok := doc.Lookup(field).BinaryOK(); ok && subtype == 4 {
					got[field]++
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v values are converted, want %v", got, want)
		}
	}
	converted(map[string]int{"id": 37, "digits": 40})
	changePlan(t, c.dir, trusted("id"))
	c.run(failure.ExitIncomplete, "apply --write") // the words are left
	converted(map[string]int{"id": 38, "digits": 40})
	for id, want := range map[string]any{"4": in(uuid.MustParse(odd), uuidrep.Standard), "3": "unknown"} {
		if got := all(t, c.coll)[`{"$numberInt":"`+id+`"}`].Lookup("id"); !got.Equal(marshalValue(t, want)) {
			t.Errorf("%s is %v", id, got)
		}
	}
	c.plan(convertFields("text", "sum"), trusted("sum"))
	c.ok("apply --write")
	converted(map[string]int{"id": 38, "sum": 40, "digits": 40})
}

// Documents that have other fields than those of Go structs, or no UUID, are left and listed, whoever vouches for them.
func TestGoStructLeft(t *testing.T) {
	u := uuid.New()
	id := bson.E{Key: "uuid", Value: in(u, uuidrep.Unspecified)}
	odd := []any{
		bson.D{id, {Key: "name", Value: "x"}}, bson.D{id, {Key: "valid", Value: false}}, bson.D{{Key: "uuid", Value: in(u, uuidrep.JavaLegacy)}},
		bson.D{{Key: "uuid", Value: bson.Binary{Data: u[1:]}}},
	}
	var docs []any
	for i, v := range append(odd, bson.D{{Key: "valid", Value: true}}, bson.D{}, "text", nil, in(u, uuidrep.Unspecified), bson.D{id}) {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: v}})
	}
	c := setting(t, docs, convertFields("goStruct", "user"))
	c.run(failure.ExitIncomplete, "apply --write")
	if lines := skipLines(t, skipList(t, c.dir)); len(lines) != len(odd) || slices.ContainsFunc(lines, func(l skipLine) bool { return l.Value[0] != '{' }) {
		t.Errorf("%+v", lines)
	}
	note(c.before, bson.D{{Key: "_id", Value: int32(len(docs) - 1)}, {Key: "user", Value: in(u, uuidrep.Standard)}})
	c.unchanged()
	changePlan(t, c.dir, trusted("user"))
	c.run(failure.ExitIncomplete, "apply --write") // no trust makes a UUID of these
	c.unchanged()
}

// A reference that is not converted is named before anything is written.
func TestTextReferences(t *testing.T) {
	s, db := started(t)
	for i := range 30 {
		u := uuid.New()
		insert(t, db.Collection("users"), []any{bson.D{{Key: "_id", Value: int32(i)}, {Key: "key", Value: u.String()}}})
		insert(t, db.Collection("orders"), []any{bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: spelling(u, i)}, {Key: "other", Value: uuid.NewString()}}})
	}
	dir := prepared(t, s, convertFields("text", "key"))
	command(t, s, "apply", dir).want(t, failure.ExitUsage).lacks(t, `"other"`).
		says(t, `"orders" "user" (text, leave) and "users" "key" (text, convert from text) would be half converted`)
}

// Of two spellings of one UUID in a field with a unique index, the second is left and listed.
func TestTextUnique(t *testing.T) {
	u := uuid.New()
	c := setting(t, []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "v", Value: spelling(u, 0)}}, bson.D{{Key: "_id", Value: int32(2)}, {Key: "v", Value: spelling(u, 4)}}},
		convertFields("text"))
	c.s.Require(t, mongotest.UniqueUpdates)
	index(t, c.coll, "v", options.Index().SetUnique(true))
	c.run(failure.ExitIncomplete, "apply --write --output json").prints(t, `"documents": 1`)
	if b := text(t, skipList(t, c.dir)); strings.Count(b, "\n") != 1 {
		t.Error(b)
	}
}

// newClub fills a database with n UUIDs in all forms that refer to each other, and plans their conversion by the decisions of
// clubDecisions, which are still to be made.
func newClub(t testing.TB, s *mongotest.Server, n int) mixedShop {
	t.Helper()
	db := connect(t, s)
	before := map[string]map[string]bson.Raw{"members": {}, "visits": {}, "rooms": {}}
	want := map[string]map[string]bson.Raw{"members": {}, "members_standard": {}, "visits": {}, "rooms": {}}
	add := func(name string, old, converted bson.D) {
		insert(t, db.Collection(name), []any{old})
		note(before[name], old)
		note(want[name], converted)
	}
	for i := range n {
		u, host, room, key := v4(i), v4(i), v4(i), v4(i)
		guest, seen := any(uuid.NullUUID{UUID: host, Valid: true}), any(in(host, uuidrep.Standard))
		switch i % 5 {
		case 0:
			guest, seen = uuid.NullUUID{}, nil
		case 1:
			guest = bson.D{{Key: "uuid", Value: bson.Binary{Data: host[:]}}}
		}
		member := bson.D{{Key: "_id", Value: spelling(u, i)}, {Key: "note", Value: u.String()}}
		add("members", member, member)
		note(want["members_standard"], bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, member[1]})
		sum := spelling(v4(i), 1)
		visit := func(member, guest, room, door any) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "member", Value: member}, {Key: "guests", Value: bson.A{guest, "x"}},
				{Key: "room", Value: room}, {Key: "door", Value: door}, {Key: "sum", Value: sum}}
		}
		add("visits", visit(spelling(u, i+1), guest, in(room, uuidrep.JavaLegacy), in(key, uuidrep.CSharpLegacy)),
			visit(in(u, uuidrep.Standard), seen, in(room, uuidrep.Standard), in(key, uuidrep.Standard)))
		keeper := bson.E{Key: "keeper", Value: in(u, uuidrep.Standard)}
		add("rooms", bson.D{{Key: "_id", Value: int32(i)}, {Key: "number", Value: in(room, uuidrep.Standard)}, keeper},
			bson.D{{Key: "_id", Value: int32(i)}, {Key: "number", Value: in(room, uuidrep.Standard)}, keeper})
	}
	file := planned(t, s)
	return mixedShop{s, db, file, filepath.Dir(file), before, want}
}

// clubDecisions has, by path, the decisions of a person about the club.
var clubDecisions = map[string]string{
	"_id text":                "convert from text",
	"member text":             "convert from text",
	"guests[] goStruct":       "convert from goStruct",
	"guests[].uuid subtype 0": "leave",
	"room subtype 3":          "convert from javaLegacy",
	"door subtype 3":          "convert from csharpLegacy",
	"number subtype 4":        "leave",
}

// decideFields writes decisions about fields into a plan.
func decideFields(t testing.TB, file string, decisions map[string]string) {
	t.Helper()
	is := text(t, file)
	for field, d := range decisions {
		path, stored, _ := strings.Cut(field, " ")
		entry := regexp.MustCompile(`(- path: ` + regexp.QuoteMeta(fmt.Sprintf("%q", path)) + `\n *stored: ` + stored + `\n *decision: ).*`)
		if !entry.MatchString(is) {
			t.Fatalf("no %s in\n%s", field, is)
		}
		is = entry.ReplaceAllString(is, "${1}"+d)
	}
	put(t, file, is)
}

// clubDecided makes the decisions of a person.
func clubDecided(t *testing.T, file string) {
	t.Helper()
	decideFields(t, file, clubDecisions)
	for _, fields := range []string{`"_id", "member"`, `"number", "room"`, `"_id", "note"`} { // one end is converted before the other, or to another form
		edit(t, file, "    fields: ["+fields+"]\n", "    fields: ["+fields+"]\n    accepted: true\n")
	}
	changePlan(t, filepath.Dir(file), intoNew("members"))
}

// A plan leaves text and documents of Go structs, with their evidence. A person decides to convert them,
// beside ordinary conversions. It is applied and proven, and undo restores every byte.
func TestPlanForms(t *testing.T) {
	m := newClub(t, mongotest.Start(t), 40)
	s, db, file, dir, before, want := m.s, m.db, m.file, m.dir, m.before, m.want
	made := text(t, file)
	for _, line := range []string{
		"# - 40 of 40 distinct UUIDs have the variant and a version of RFC 9562: 4",
		"# left: text is not wrong", "{uuid: …, valid: true}", "valid: false}, which is no UUID",
		"- {order: text, by: evidence, versions: [4], digits: [4]}",
		"- {order: goStruct, by: evidence, versions: [4]}",
		`- between: ["members", "visits"]`, `fields: ["_id", "member"]`, "# \"members\" \"_id\" is text, and \"rooms\" \"keeper\" is subtype 4",
	} {
		if !strings.Contains(made, line) {
			t.Errorf("%q is not in\n%s", line, made)
		}
	}
	for decision, want := range map[string]string{
		"_id text: convert from text":              "values in _id cannot be converted in place",
		"guests[] goStruct: convert from goStruct": `the values at "guests[].uuid" are converted with the documents: leave them`,
		"member text: convert from goStruct":       "the values are text, and goStruct is goStruct",
		"number subtype 4: convert from standard":  "the values are standard already",
	} {
		edited := filepath.Join(t.TempDir(), "plan.yaml")
		put(t, edited, made)
		field, d, _ := strings.Cut(decision, ": ")
		decideFields(t, edited, map[string]string{field: d})
		command(t, s, "apply", filepath.Dir(edited)).want(t, failure.ExitUsage).says(t, want)
	}
	clubDecided(t, file)
	command(t, s, "apply", dir, "--output", "json").want(t, failure.ExitOK)
	whole(t, db, before)

	// The evidence is compared, also that of text.
	u := v4(1)
	u[6] = 0x10
	was := before["visits"]["{\"$numberInt\":\"2\"}"].Lookup("member")
	set(t, db.Collection("visits"), int32(2), "member", u.String())
	command(t, s, "apply", dir, "--write").want(t, failure.ExitUsage).says(t, `the evidence of "member" (text) for text was {order: text, by: evidence, versions: [4]`)
	set(t, db.Collection("visits"), int32(2), "member", was)
	whole(t, db, before)

	command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	whole(t, db, want)
	command(t, s, "status", "--db", s.Database(), "--output", "json").want(t, failure.ExitOK)
	command(t, s, "status", "--db", s.Database()).want(t, failure.ExitOK).prints(t, "2 of 2 conversions done")
	command(t, s, "verify", dir, "--output", "json").want(t, failure.ExitOK)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	set(t, db.Collection("visits"), int32(2), "member", uuid.NewString())
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitIncomplete)
	set(t, db.Collection("visits"), int32(2), "member", was)
	whole(t, db, before)
}

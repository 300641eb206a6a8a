package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// goStruct returns the document that the driver writes for a uuid.NullUUID, without a codec.
func goStruct(u uuid.UUID, valid bool) bson.D {
	return bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}, {Key: "valid", Value: valid}}
}

// club fills a database with UUIDs in all forms that refer to each other, and returns what its
// collections must have after the conversion by the decisions of clubDecisions.
func club(t testing.TB, db *mongo.Database, n int) map[string]map[string]bson.Raw {
	t.Helper()
	want := map[string]map[string]bson.Raw{"members": {}, "members_standard": {}, "visits": {}, "rooms": {}}
	var members, visits, rooms []any
	for i := range n {
		u, host, room, key := v4(i), v4(i), v4(i), v4(i)
		guest, seen := any(goStruct(host, true)), any(in(host, uuidrep.Standard))
		switch i % 5 {
		case 0:
			guest, seen = goStruct(uuid.Nil, false), nil
		case 1:
			guest = bson.D{{Key: "uuid", Value: bson.Binary{Data: host[:]}}}
		}
		member := bson.D{{Key: "_id", Value: spelling(u, i)}, {Key: "note", Value: u.String()}}
		members = append(members, member)
		note(want["members"], member)
		note(want["members_standard"], bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, member[1]})
		visit := func(member, guest, room, door, sum any) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "member", Value: member}, {Key: "guests", Value: bson.A{guest, "x"}},
				{Key: "room", Value: room}, {Key: "door", Value: door}, {Key: "sum", Value: sum}}
		}
		sum := spelling(v4(i), 1)
		visits = append(visits, visit(spelling(u, i+1), guest, in(room, uuidrep.JavaLegacy), in(key, uuidrep.CSharpLegacy), sum))
		note(want["visits"], visit(in(u, uuidrep.Standard), seen, in(room, uuidrep.Standard), key.String(), sum))
		rooms = append(rooms, bson.D{{Key: "_id", Value: int32(i)}, {Key: "number", Value: in(room, uuidrep.Standard)}, {Key: "keeper", Value: in(u, uuidrep.Standard)}})
		note(want["rooms"], bson.D{{Key: "_id", Value: int32(i)}, {Key: "number", Value: room.String()}, {Key: "keeper", Value: in(u, uuidrep.Standard)}})
	}
	insert(t, db.Collection("members"), members)
	insert(t, db.Collection("visits"), visits)
	insert(t, db.Collection("rooms"), rooms)
	return want
}

// clubDecisions has, by path, the decisions of a person about the club.
var clubDecisions = map[string]string{
	"_id text":                "convert from text",
	"member text":             "convert from text",
	"guests[] goStruct":       "convert from goStruct",
	"guests[].uuid subtype 0": "leave",
	"room subtype 3":          "convert from javaLegacy",
	"door subtype 3":          "convert from csharpLegacy to text",
	"number subtype 4":        "convert from standard to text",
}

// clubAccepted edits the references of which one end is converted before the other, or to another form.
var clubAccepted = []string{"    fields: [\"_id\", \"member\"]\n", "    fields: [\"_id\", \"member\"]\n    accepted: true\n",
	"    fields: [\"number\", \"room\"]\n", "    fields: [\"number\", \"room\"]\n    accepted: true\n",
	"    fields: [\"_id\", \"note\"]\n", "    fields: [\"_id\", \"note\"]\n    accepted: true\n"}

// decideFields writes decisions about fields into a plan.
func decideFields(t testing.TB, file string, decisions map[string]string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for field, d := range decisions {
		path, stored, _ := strings.Cut(field, " ")
		entry := regexp.MustCompile(`(- path: ` + regexp.QuoteMeta(fmt.Sprintf("%q", path)) + `\n *stored: ` + stored + `\n *decision: ).*`)
		if !entry.Match(b) {
			t.Fatalf("no %s in\n%s", field, b)
		}
		b = entry.ReplaceAll(b, []byte("${1}"+d))
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// clubPlan fills a database and returns its plan with the decisions of a person, and what the
// collections have before and after it is applied.
func clubPlan(t *testing.T, s *mongotest.Server, db *mongo.Database) (file string, before, want map[string]map[string]bson.Raw) {
	t.Helper()
	want = club(t, db, 40)
	before = make(map[string]map[string]bson.Raw)
	for _, name := range []string{"members", "visits", "rooms"} {
		before[name] = all(t, db.Collection(name))
	}
	return planned(t, s), before, want
}

// A plan leaves text and documents of Go structs, with their evidence. A person decides to convert them,
// beside ordinary conversions and conversions to text. It is applied and proven, and undo restores every
// byte.
func TestPlanForms(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	file, before, want := clubPlan(t, s, db)
	dir := filepath.Dir(file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"# - 40 of 40 distinct UUIDs have the variant and a version of RFC 9562: 4",
		"# left: text is not wrong", "{uuid: …, valid: true}", "valid: false}, which is no UUID",
		"- {order: text, by: evidence, versions: [4], digits: [4]}",
		"- {order: goStruct, by: evidence, versions: [4]}",
		`- between: ["members", "visits"]`, `fields: ["_id", "member"]`, "# \"members\" \"_id\" is text, and \"rooms\" \"keeper\" is subtype 4",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	args := []string{"apply", dir}
	for _, tt := range []struct {
		decisions map[string]string
		want      string
	}{
		{map[string]string{"_id text": "convert from text"}, "values in _id cannot be converted in place"},
		{map[string]string{"guests[] goStruct": "convert from goStruct"}, `the values at "guests[].uuid" are converted with the documents: leave them`},
		{map[string]string{"member text": "convert from goStruct"}, "the values are text, and goStruct is goStruct"},
		{map[string]string{"member text": "convert from text to text"}, "the two representations are the same"},
		{map[string]string{"number subtype 4": "convert from standard"}, "the two representations are the same"},
	} {
		edited := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(edited, text, 0o600); err != nil {
			t.Fatal(err)
		}
		decideFields(t, edited, tt.decisions)
		if r := command(t, s, "apply", filepath.Dir(edited)).want(t, failure.ExitUsage); !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%v: %s", tt.decisions, r.stderr)
		}
	}
	decideFields(t, file, clubDecisions)
	copyAlso(t, file, "members")
	edit(t, file, clubAccepted...)
	command(t, s, append(args, "--output", "json")...).want(t, failure.ExitOK)
	whole(t, db, before)

	// The evidence is compared, also that of text.
	u := v4(1)
	u[6] = 0x10
	change := func(id int32, member string) {
		t.Helper()
		if _, err := db.Collection("visits").UpdateByID(t.Context(), id, bson.D{{Key: "$set", Value: bson.D{{Key: "member", Value: member}}}}); err != nil {
			t.Fatal(err)
		}
	}
	change(2, u.String())
	if r := command(t, s, append(args, "--write")...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, `the evidence of "member" (text) for text was {order: text, by: evidence, versions: [4]`) {
		t.Error(r.stderr)
	}
	change(2, before["visits"]["{\"$numberInt\":\"2\"}"].Lookup("member").StringValue())
	whole(t, db, before)

	command(t, s, append(args, "--write")...).want(t, failure.ExitOK)
	whole(t, db, want)
	for _, output := range []string{"table", "json"} {
		r := command(t, s, "status", "--db", s.Database(), "--output", output).want(t, failure.ExitOK)
		if output == "table" && (!strings.Contains(r.stdout, "3 of 3 conversions done") || !strings.Contains(r.stdout, "csharpLegacy to text")) {
			t.Error(r.stdout)
		}
		command(t, s, "verify", dir, "--output", output).want(t, failure.ExitOK)
	}
	change(2, uuid.NewString())
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitIncomplete)
	change(2, before["visits"]["{\"$numberInt\":\"2\"}"].Lookup("member").StringValue())
	whole(t, db, before)
}

// Such a plan, or its undo, that is killed at random moments and started again has the same result as
// one that is not.
func TestKillPlanForms(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	file, before, want := clubPlan(t, s, db)
	dir := filepath.Dir(file)
	decideFields(t, file, clubDecisions)
	copyAlso(t, file, "members")
	edit(t, file, clubAccepted...)
	flags := []string{dir, "--write", "--batch", "10", "--batch-timeout", "1s"}
	applied := untilDone(t, s, append([]string{"apply", "--workers", "2"}, flags...)...)
	whole(t, db, want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	undone := untilDone(t, s, append([]string{"undo"}, flags...)...)
	whole(t, db, before)
	t.Logf("killed %d times while it converted, and %d times while it restored", applied, undone)
}

package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// binData returns the UUID of the document in a representation, as mongosh writes it.
func binData(kind string) string {
	v := kindstest.Value(kind)
	return fmt.Sprintf("BinData(%d, %q)", v.Subtype, base64.StdEncoding.EncodeToString(v.Data))
}

// The plan lists the validators, partial indexes and views with UUIDs that it converts, as they are and as they become, with
// commands. apply refuses until each is accepted, and again if one is another one then. A UUID whose field cannot be told is
// given in all readings. What is left is not named.
func TestDefinitions(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0" // so that nothing is probed that the server does not know
	db := s.Client.Database("app")
	r := rand.New(rand.NewPCG(1, 1))
	var orders []bson.Raw
	for i := range 40 {
		u, err := uuid.NewRandomFromReader(reader{r})
		if err != nil {
			t.Fatal(err)
		}
		orders = append(orders, kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: kindstest.Stored(u, "javaLegacy")},
			{Key: "hash", Value: bson.Binary{Subtype: 3, Data: kindstest.Octets(r)}}}))
	}
	s.Put(db.Collection("orders"), orders...)
	java := kindstest.Value("javaLegacy")
	is := func(field string) bson.D { return bson.D{{Key: field, Value: java}} }
	s.Describe(db.Collection("orders"), "collection", bson.D{{Key: "validator", Value: bson.D{{Key: "$nor", Value: bson.A{is("user")}}}}},
		bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "n", Value: int32(1)}}}, {Key: "name", Value: "one"}, {Key: "unique", Value: true}, {Key: "partialFilterExpression", Value: is("user")}},
		bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "n", Value: int32(-1)}}}, {Key: "name", Value: "left"}, {Key: "partialFilterExpression", Value: is("hash")}})
	view := func(name string, stages ...bson.D) {
		s.Describe(db.Collection(name), "view", bson.D{{Key: "viewOn", Value: "orders"}, {Key: "pipeline", Value: stages}})
	}
	view("mine", bson.D{{Key: "$match", Value: is("user")}})
	view("groups", bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$user"}}}}, bson.D{{Key: "$match", Value: is("_id")}})

	dir := filepath.Join(t.TempDir(), "app.d")
	at := []string{"--uri", s.URI, "--retry-for", "0s"}
	run := func(args ...string) result { return command(t, append(args, at...)...) }
	run("plan", dir, "--db", "app").want(t, failure.ExitOK)
	edit(t, dir, "decision: unknown", "decision: leave")
	b, err := os.ReadFile(filepath.Join(dir, "plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	to := func(kind string) string { return strings.ReplaceAll(`[{$match: {user: X}}]`, "X", binData(kind)) }
	for _, want := range []string{
		`  is: "[{$match: {user: ` + strings.ReplaceAll(binData("javaLegacy"), `"`, `\"`),
		`runCommand({collMod: "mine", viewOn: "orders", pipeline: ` + to("standard") + `})`,
		`runCommand({collMod: "orders", validator: {$nor: [{user: ` + binData("standard") + `}]}})`,
		`runCommand({dropIndexes: "orders", index: "one"})`,
		`runCommand({createIndexes: "orders", indexes: [{key: {n: 1}, name: "one", unique: true, partialFilterExpression: {user: ` + binData("standard") + `}}]})`,
		"if UUIDs whose byte order cannot be told are csharpLegacy:",
		"if UUIDs whose byte order cannot be told are javaLegacy:",
		`pipeline: [{$group: {_id: "$user"}}, {$match: {_id: ` + binData("standard") + `}}]`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in\n%s", want, b)
		}
	}
	all := []string{`validator of "orders"`, `index "one" of "orders"`, `view "groups"`, `view "mine"`}
	for _, more := range [][]string{nil, {"--write"}} {
		if r := run(append([]string{"apply", dir}, more...)...).want(t, failure.ExitUsage, all...); strings.Contains(r.stderr, `"left"`) { // by the edit
			t.Errorf("what is left is named: %s", r.stderr)
		}
	}
	// What is gone may be removed, and is added again when it is there again.
	view("groups")
	run("plan", dir).want(t, failure.ExitOK, `the view "groups" has no UUIDs any more that are converted: remove its entry`)
	text := string(b)
	begin := strings.Index(text, `  # view "groups"`)
	end := begin + strings.Index(text[begin:], `  # view "mine"`)
	edit(t, dir, text[begin:end], "")
	if r := run("plan", dir).want(t, failure.ExitOK); strings.Contains(r.stderr, `view "groups"`) {
		t.Errorf("got %s", r.stderr)
	}
	view("groups", bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$user"}}}}, bson.D{{Key: "$match", Value: is("_id")}})
	run("apply", dir).want(t, failure.ExitUsage, `view "groups"`)
	run("plan", dir).want(t, failure.ExitOK, `the view "groups" has UUIDs that are converted`)
	accept := func() {
		text, err := os.ReadFile(filepath.Join(dir, "plan.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		head, list, _ := strings.Cut(string(text), "\ndefinitions:\n")
		lines := strings.Split(list, "\n")
		for i, l := range lines {
			if strings.HasPrefix(l, "    is: ") && !strings.Contains(lines[i+1], "accepted") {
				lines[i] += "\n    accepted: true"
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(head+"\ndefinitions:\n"+strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accept()
	run("apply", dir).want(t, failure.ExitOK, append(all, "becomes: "+to("standard"))...)
	view("mine", bson.D{{Key: "$match", Value: is("user")}}, bson.D{{Key: "$limit", Value: int32(1)}})
	run("apply", dir, "--write").want(t, failure.ExitUsage, `which bsonids does not change: view "mine"; `)
	run("plan", dir).want(t, failure.ExitOK, `the view "mine" has UUIDs that are converted`)
	accept()
	var applied report.Applied
	if err := json.Unmarshal([]byte(run("apply", dir, "--output", "json").want(t, failure.ExitOK).stdout), &applied); err != nil || len(applied.Definitions) != 4 {
		t.Errorf("%v: %+v", err, applied.Definitions)
	}
	run("apply", dir, "--write").want(t, failure.ExitOK, all...)
	if got := s.Documents(db.Collection("orders"))[0].Lookup("user"); got.Type != bson.TypeBinary || got.Value[4] != 4 {
		t.Errorf("got %s", got)
	}
	// A view that was changed by hand has nothing left to convert.
	run("apply", dir, "--write").want(t, failure.ExitOK)
}

// filled returns 40 documents with new UUIDs in a field, and the last of them.
func filled(t *testing.T, field string, stored func(uuid.UUID) any) (docs []bson.Raw, last uuid.UUID) {
	t.Helper()
	r := reader{rand.New(rand.NewPCG(1, 1))}
	for i := range 40 {
		u, err := uuid.NewRandomFromReader(r)
		if err != nil {
			t.Fatal(err)
		}
		docs, last = append(docs, kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: field, Value: stored(u)}})), u
	}
	return docs, last
}

// The plan lists what its decisions convert, also if the survey suggests others.
func TestDefinitionsByEdit(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0" // so that nothing is probed that the server does not know
	db := s.Client.Database("app")
	users, last := filled(t, "key", func(u uuid.UUID) any { return u.String() })
	s.Put(db.Collection("users"), users...)
	match := bson.A{bson.D{{Key: "$match", Value: bson.D{{Key: "key", Value: last.String()}}}}}
	s.Describe(db.Collection("mine"), "view", bson.D{{Key: "viewOn", Value: "users"}, {Key: "pipeline", Value: match}})
	dir := filepath.Join(t.TempDir(), "app.d")
	run := func(args ...string) result { return command(t, append(args, "--uri", s.URI, "--retry-for", "0s")...) }
	run("plan", dir, "--db", "app").want(t, failure.ExitOK)
	edit(t, dir, "decision: leave", "decision: convert from text\n        trust: true")
	run("apply", dir).want(t, failure.ExitUsage, `view "mine"`)
	run("plan", dir).want(t, failure.ExitOK, `the view "mine" has UUIDs that are converted`)
	edit(t, dir, `  - of: "view`, "  - accepted: true\n    of: \"view")
	run("apply", dir, "--write").want(t, failure.ExitOK, `view "mine"`)
}

// A validator of docs/guarding.md stays as it is, because with the bounds of another subtype it would refuse what is written:
// the plan does not ask for another one.
func TestDefinitionsByHand(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/guarding.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the guide is not part of the module")
	} else if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?s)EJSON\.deserialize\((.*?)\)\)\n`).FindAllSubmatch(page, -1)
	if len(all) != 2 {
		t.Fatalf("%d commands", len(all))
	}
	for _, m := range all {
		var command struct{ Validator bson.D }
		if err := bson.UnmarshalExtJSON(m[1], false, &command); err != nil || len(command.Validator) == 0 {
			t.Fatalf("%s: %v", m[1], err)
		}
		byHand(t, command.Validator)
	}
}

func byHand(t *testing.T, validator bson.D) {
	t.Helper()
	s := memory.Start(t)
	s.FerretDB = "v1.24.0"
	db := s.Client.Database("app")
	orders, _ := filled(t, "customer", func(u uuid.UUID) any { return kindstest.Stored(u, "javaLegacy") })
	s.Put(db.Collection("orders"), orders...)
	s.Describe(db.Collection("orders"), "collection", bson.D{{Key: "validator", Value: validator}, {Key: "validationLevel", Value: "moderate"}})
	dir := filepath.Join(t.TempDir(), "app.d")
	run := func(args ...string) result { return command(t, append(args, "--uri", s.URI, "--retry-for", "0s")...) }
	run("plan", dir, "--db", "app").want(t, failure.ExitOK)
	run("apply", dir, "--write").want(t, failure.ExitOK)
	run("verify", dir).want(t, failure.ExitOK)
	run("undo", dir, "--write").want(t, failure.ExitOK)
}

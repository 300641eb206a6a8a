package servertest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// cut is a database with collections and their converted copies.
type cut struct {
	testing.TB
	s     target
	db    *mongo.Database
	names []string
	dir   string   // of the last migration
	flags []string // of cutover and undo
}

// startCut starts a server that can change validators, or skips the test, and makes collections with their
// converted copies, which are one group.
func startCut(t testing.TB, documents int, names ...string) *cut {
	t.Helper()
	s, db := started(t, mongotest.CollMod)
	c := &cut{t, s, db, names, "", []string{"--batch-timeout", "5s", "--retry-for", "30s"}}
	for _, name := range names {
		check(t, c.db.RunCommand(t.Context(), append(bson.D{{Key: "create", Value: name}}, cutSettings...)).Err())
		var docs []any
		for i := range documents {
			docs = append(docs, cutDoc(i, 0))
		}
		insert(t, c.db.Collection(name), docs)
	}
	if len(names) > 0 {
		c.copy(names...)
	}
	return c
}

// cutSettings are the settings of the collections.
var cutSettings = bson.D{{Key: "validator", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: int32(0)}}}}},
	{Key: "validationLevel", Value: "moderate"}, {Key: "validationAction", Value: "error"}}

// cutDoc returns a document in the old representation, with UUIDs in _id and in a field.
func cutDoc(i, n int) bson.D {
	return bson.D{{Key: "_id", Value: in(cutID(i), uuidrep.JavaLegacy)}, {Key: "customer", Value: in(cutID(i), uuidrep.JavaLegacy)}, {Key: "n", Value: int32(n)}}
}

// cutID returns the same UUID of version 4 for the same number.
func cutID(i int) uuid.UUID {
	u := uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d", i))
	u[6] = u[6]&0x0f | 0x40
	return u
}

// copy makes the converted copies of collections.
func (c *cut) copy(names ...string) {
	c.Helper()
	c.names = names
	changes := []func(*plan.Plan){convertFields("javaLegacy")}
	for _, name := range names {
		changes = append(changes, copiedInto(name, name+"_new"))
	}
	c.planned(changes...)
	c.apply()
}

// planned makes the plan of the collections, and changes it.
func (c *cut) planned(changes ...func(*plan.Plan)) {
	c.Helper()
	var flags []string
	for _, name := range c.names {
		flags = append(flags, "--collection", name)
	}
	c.dir = filepath.Dir(planned(c, c.s.(*mongotest.Server), flags...))
	changePlan(c, c.dir, changes...)
}

// copyFrom makes the converted copy of a collection, by a plan of its own. The fields, or all without fields,
// are converted from a kind.
func (c *cut) copyFrom(name, into, from string, fields ...string) {
	c.Helper()
	c.planFrom(name, into, from, fields...)
	c.apply()
}

// planFrom makes the plan of such a copy, and returns its directory.
func (c *cut) planFrom(name, into, from string, fields ...string) (dir string) {
	c.Helper()
	c.names = []string{name}
	c.planned(convertFields(from, fields...), accepted, copiedInto(name, into))
	return c.dir
}

func (c *cut) apply() {
	c.Helper()
	command(c, c.s, "apply", c.dir, "--write").want(c, failure.ExitOK)
}

type cutReport struct {
	State, ComparedAllBehindFence string
	RefusedMilliseconds           int64
	Collections                   []struct {
		Documents, DocumentsComparedBehindFence, GapMilliseconds int64
		DocumentsInserted, DocumentsReplaced, DocumentsDeleted   int64
		DocumentsWrittenInSpite                                  int64
		CreatedBetween                                           []struct {
			Collection           string
			Documents, Conflicts int64
		}
	}
}

// is fails the test unless the cutover is in the state.
func (r cutReport) is(t testing.TB, state string) cutReport {
	t.Helper()
	if r.State != state {
		t.Errorf("the state is %q, want %q", r.State, state)
	}
	return r
}

// line returns the command line of a command for the migration.
func (c *cut) line(name string, flags ...string) []string {
	return c.lineOf(name, []string{c.dir}, flags...)
}

// lineByID is line with the id of the cutover, as if the directory were lost.
func (c *cut) lineByID(name string, flags ...string) []string {
	c.Helper()
	return c.lineOf(name, []string{"--db", c.db.Name(), c.id()}, flags...)
}

func (c *cut) lineOf(name string, of []string, flags ...string) []string {
	own := c.flags
	if name == "release" {
		own = own[2:] // it has no --batch-timeout
	}
	return slices.Concat([]string{name}, of, own, flags)
}

// id returns the id of the cutover that has not ended, as status prints it.
func (c *cut) id() string {
	c.Helper()
	var r struct{ Cutovers []struct{ ID string } }
	decode(c, command(c, c.s, "status", "--db", c.db.Name(), "--output", "json").want(c, failure.ExitOK).stdout, &r)
	if len(r.Cutovers) != 1 {
		c.Fatalf("%+v", r)
	}
	return r.Cutovers[0].ID
}

// cutover runs cutover for all collections. A negative code stands for 0 or 3.
func (c *cut) cutover(s target, code int, flags ...string) cutReport {
	c.Helper()
	r := command(c, s, c.line("cutover", append(flags, "-o", "json")...)...)
	if code < 0 && r.code == failure.ExitIncomplete {
		code = failure.ExitIncomplete
	}
	r.want(c, max(0, code))
	var out cutReport
	decode(c, r.stdout, &out)
	return out
}

// run runs a command for all collections.
func (c *cut) run(code int, name string, flags ...string) result {
	c.Helper()
	return command(c, c.s, c.line(name, flags...)...).want(c, code)
}

func (c *cut) release() {
	c.Helper()
	c.run(failure.ExitOK, "release", "--write", "--allow-changed", "-o", "json")
}

// docs returns the documents of a collection.
func (c *cut) docs(name string) map[string]bson.Raw {
	c.Helper()
	return all(c, c.db.Collection(name))
}

func cutBy(i int, r uuidrep.Representation) bson.D {
	return bson.D{{Key: "_id", Value: in(cutID(i), r)}}
}

// put inserts a document as a service does in spite of the validator.
func (c *cut) put(name string, doc bson.D) {
	c.Helper()
	did(c)(c.db.Collection(name).InsertOne(c.Context(), doc, options.InsertOne().SetBypassDocumentValidation(true)))
}

// set sets a field of the document with the _id in the representation, in spite of the validator.
func (c *cut) set(name string, i int, r uuidrep.Representation, field string, v any) {
	c.Helper()
	update := bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: v}}}}
	did(c)(c.db.Collection(name).UpdateOne(c.Context(), cutBy(i, r), update, options.UpdateOne().SetBypassDocumentValidation(true)))
}

func (c *cut) delete(name string, i int, r uuidrep.Representation) {
	c.Helper()
	did(c)(c.db.Collection(name).DeleteOne(c.Context(), cutBy(i, r)))
}

// collections returns the names of the collections, without the record.
func (c *cut) collections() string {
	c.Helper()
	// MongoDB keeps the definitions of views in a collection.
	names, err := c.db.ListCollectionNames(c.Context(), bson.D{{Key: "name", Value: bson.D{{Key: "$nin", Value: bson.A{record.Name, "system.views"}}}}})
	if err != nil {
		c.Fatal(err)
	}
	return strings.Join(slices.Sorted(slices.Values(names)), " ")
}

func (c *cut) wantCollections(want string) {
	c.Helper()
	if got := c.collections(); got != want {
		c.Fatalf("collections %s, want %s", got, want)
	}
}

// converted returns the documents that the conversion makes of docs.
func converted(t testing.TB, docs map[string]bson.Raw) map[string]bson.Raw {
	t.Helper()
	out := make(map[string]bson.Raw)
	for _, doc := range docs {
		elements, err := doc.Elements()
		check(t, err)
		var fresh bson.D
		for _, e := range elements {
			v := any(e.Value())
			if e.Value().Type == bson.TypeBinary {
				u, err := uuidOf(e.Value())
				check(t, err)
				v = in(u, uuidrep.Standard)
			}
			fresh = append(fresh, bson.E{Key: e.Key(), Value: v})
		}
		note(out, fresh)
	}
	return out
}

// settingsOf returns the validator in extended JSON, the level and the action of a collection. The defaults of a
// server are filled in.
func (c *cut) settingsOf(name string) [3]string {
	c.Helper()
	specs, err := c.db.ListCollectionSpecifications(c.Context(), bson.D{{Key: "name", Value: name}})
	if err != nil || len(specs) != 1 {
		c.Fatal(specs, err)
	}
	s := [3]string{"", "strict", "error"}
	if v, ok := specs[0].Options.Lookup("validator").DocumentOK(); ok && len(v) > 5 {
		b, err := bson.MarshalExtJSON(v, true, false)
		if err != nil {
			c.Fatal(err)
		}
		s[0] = string(b)
	}
	for i, name := range []string{"validationLevel", "validationAction"} {
		if v, ok := specs[0].Options.Lookup(name).StringValueOK(); ok {
			s[i+1] = v
		}
	}
	return s
}

const fence = `{"$nor":[{}]}`

func (c *cut) wantSettings(settings [3]string, names ...string) {
	c.Helper()
	for _, name := range names {
		if got := c.settingsOf(name); got != settings {
			c.Errorf("%s has %v, want %v", name, got, settings)
		}
	}
}

var fencedSettings = [3]string{fence, "strict", "error"}

// Copies take the places of their collections, with what changed since they were made. The fence stays until the
// release. A dry run changes nothing.
func TestCutover(t *testing.T) {
	c := startCut(t, 200, "a", "b")
	before, settings := map[string]map[string]bson.Raw{}, c.settingsOf("a")
	for _, name := range c.names {
		c.delete(name, 1, uuidrep.JavaLegacy)
		c.set(name, 2, uuidrep.JavaLegacy, "n", int32(7))
		c.put(name, cutDoc(1000, 1))
		before[name] = c.docs(name)
	}
	changes := func(r cutReport) {
		t.Helper()
		for _, x := range r.Collections {
			if x.DocumentsInserted != 1 || x.DocumentsReplaced != 1 || x.DocumentsDeleted != 1 {
				t.Errorf("%+v", x)
			}
		}
	}
	changes(c.cutover(c.s, failure.ExitOK).is(t, "planned"))
	c.wantCollections("a a_new b b_new")
	c.wantSettings(settings, "a", "a_new", "b", "b_new")
	changes(c.cutover(c.s, failure.ExitOK, "--write").is(t, "switched"))
	c.wantCollections("a a_before_cutover b b_before_cutover")
	for _, name := range c.names {
		equal(t, c.docs(name), converted(t, before[name]))
		equal(t, c.docs(name+"_before_cutover"), before[name])
		if _, err := c.db.Collection(name).InsertOne(t.Context(), bson.D{}); err == nil {
			t.Error("the fence let an insert through")
		}
	}
	c.wantSettings(fencedSettings, "a", "b", "a_before_cutover", "b_before_cutover")
	c.cutover(c.s, failure.ExitOK, "--write") // nothing to do
	c.run(failure.ExitOK, "release").prints(t, "point of no return")
	c.wantSettings(fencedSettings, "a", "b")
	c.run(failure.ExitOK, "release", "--write")
	c.wantSettings(settings, "a", "b")
	c.wantSettings(fencedSettings, "a_before_cutover", "b_before_cutover")
	// It can be given again, and nothing else is done after it.
	for _, flags := range [][]string{nil, {"--write"}} {
		c.run(failure.ExitOK, "release", flags...).prints(t, "was released at 20")
		c.run(failure.ExitUsage, "undo", flags...).says(t, "was released at 20", "point of no return", "a_before_cutover, b_before_cutover")
		c.run(failure.ExitUsage, "cutover", append(flags, "--roll-back")...).says(t, "was released at 20", "point of no return")
	}
	command(t, c.s, "apply", c.dir, "--write").want(t, failure.ExitUsage).says(t, "was released at 20")
	for _, name := range c.names {
		equal(t, c.docs(name), converted(t, before[name]))
		equal(t, c.docs(name+"_before_cutover"), before[name])
	}
	drop(t, c.db.Collection("a_before_cutover"))
	drop(t, c.db.Collection("b_before_cutover"))
	c.run(failure.ExitUsage, "undo", "--write").says(t, "the old collections were dropped")
}

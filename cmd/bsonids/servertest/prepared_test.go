package servertest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// prepared makes the plan of a database, and changes it as a person would. It returns the directory.
func prepared(t testing.TB, s *mongotest.Server, changes ...func(*plan.Plan)) (dir string) {
	t.Helper()
	dir = filepath.Dir(planned(t, s))
	if len(changes) > 0 { // which lose its comments
		changePlan(t, dir, changes...)
	}
	return dir
}

// changePlan changes the plan of a directory.
func changePlan(t testing.TB, dir string, changes ...func(*plan.Plan)) {
	t.Helper()
	p, err := plan.ReadFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(p)
	}
	dumptest.Write(t, filepath.Join(dir, plan.PlanFile), p.Text())
}

// convertFields returns a function that makes the decision to convert the fields from a kind, and to leave the
// others. Without fields, it converts all that are stored so.
func convertFields(from string, fields ...string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		eachField(p, func(f *plan.Field) {
			k, err := kinds.Parse(from)
			if f.Decision = plan.Leave; err == nil && f.Stored == k.Stored() && (len(fields) == 0 || slices.Contains(fields, f.Plain())) {
				f.Decision = plan.Convert(from)
			}
		})
	}
}

// trusted returns a function that adds trust to the fields that are converted.
func trusted(fields ...string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		eachField(p, func(f *plan.Field) {
			if _, ok := f.Decision.From(); ok && slices.Contains(fields, f.Plain()) {
				f.Trust = true
			}
		})
	}
}

// intoNew returns a function that gives collections a new one each, as those whose _id is converted have.
func intoNew(names ...string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		for _, name := range names {
			copiedInto(name, name+"_standard")(p)
		}
	}
}

// copiedInto returns a function that gives a collection the new one with the name into.
func copiedInto(name, into string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		for i := range p.Collections {
			if c := &p.Collections[i]; c.Name == name {
				c.Into = into
			}
		}
	}
}

// accepted accepts all references of which only one end is converted.
func accepted(p *plan.Plan) {
	for i := range p.References {
		p.References[i].Accepted = true
	}
}

// skipList returns the path of the only skip list of a migration.
func skipList(t testing.TB, dir string) string { return onlyFile(t, dir, ".skipped.jsonl") }

// onlyFile returns the path of the only file of a migration whose name has the end.
func onlyFile(t testing.TB, dir, end string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+end))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	return files[0]
}

// lines returns the lines of a file, sorted.
func lines(t testing.TB, path string) []string { return slices.Sorted(strings.Lines(text(t, path))) }

// removed removes a file.
func removed(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}

// deleted deletes the documents that match the filter.
func deleted(t testing.TB, coll *mongo.Collection, filter bson.D) {
	t.Helper()
	if _, err := coll.DeleteMany(context.Background(), filter); err != nil {
		t.Error(err)
	}
}

// dial connects to a server, or to a proxy of it, which the test may end.
func dial(t testing.TB, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

// setRate sets the rate of a migration.
func setRate(t testing.TB, dir, rate string) {
	t.Helper()
	dumptest.Write(t, filepath.Join(dir, "rate"), []byte(rate))
}

// scene is the collection c with UUIDs in one representation, and the plan that converts it to another one.
type scene struct {
	testing.TB
	s      *mongotest.Server
	at     target // the server, or a proxy of it
	db     *mongo.Database
	coll   *mongo.Collection
	result *mongo.Collection // the copy, or coll
	dir    string
	before map[string]bson.Raw // the documents of coll
	want   map[string]bson.Raw // those of result when it is converted
}

// newScene fills the collection c with n documents, and makes and changes the plan.
func newScene(t testing.TB, n int, from uuidrep.Representation, changes ...func(*plan.Plan)) *scene {
	t.Helper()
	s, db := started(t)
	c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c")}
	c.want = seed(t, c.coll, n, from)
	c.plan(changes...)
	return c
}

// setting is a scene with documents for which the plan to standard converts values in Java order.
func setting(t testing.TB, docs []any, changes ...func(*plan.Plan)) *scene {
	t.Helper()
	s, db := started(t)
	c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c")}
	insert(t, c.coll, docs)
	c.plan(append([]func(*plan.Plan){convertFields("javaLegacy")}, changes...)...)
	return c
}

// pairs is a setting of n documents of which doc returns each, and what becomes of it.
func pairs(t testing.TB, n int, doc func(i int) (old, converted bson.D), changes ...func(*plan.Plan)) *scene {
	t.Helper()
	var docs []any
	want := make(map[string]bson.Raw)
	for i := range n {
		old, converted := doc(i)
		docs = append(docs, old)
		note(want, converted)
	}
	c := setting(t, docs, changes...)
	c.want = want
	return c
}

// plan makes and changes the plan of the collection as it is now.
func (c *scene) plan(changes ...func(*plan.Plan)) {
	c.Helper()
	c.before = all(c, c.coll)
	c.dir = prepared(c, c.s, changes...)
	c.result = c.coll
	p, err := plan.ReadFile(c.dir)
	if err != nil {
		c.Fatal(err)
	}
	for _, of := range p.Collections {
		if of.Name == c.coll.Name() && of.Into != "" {
			c.result = c.db.Collection(of.Into)
		}
	}
}

// through is the scene whose commands go through a proxy.
func (c *scene) through(at target) *scene {
	other := *c
	other.at = at
	return &other
}

// in is the scene with another directory.
func (c *scene) in(dir string) *scene {
	other := *c
	other.dir = dir
	return &other
}

// args returns the arguments of a command, given as its verb and its flags, with the directory between them.
func (c *scene) args(line string) []string {
	verb, flags, _ := strings.Cut(line, " ")
	return append([]string{verb, c.dir}, strings.Fields(flags)...)
}

// run runs a command, given as its verb and its flags, which must end with the code.
func (c *scene) run(code int, line string) result {
	c.Helper()
	return command(c, c.at, c.args(line)...).want(c, code)
}

// ok runs commands that must succeed.
func (c *scene) ok(lines ...string) {
	c.Helper()
	for _, line := range lines {
		c.run(failure.ExitOK, line)
	}
}

// converted fails the test unless all is converted, and a collection that is copied is as it was.
func (c *scene) converted() {
	c.Helper()
	equal(c, all(c, c.result), c.want)
	if c.result.Name() != c.coll.Name() {
		c.unchanged()
	}
}

// unchanged fails the test unless the collection is as it was.
func (c *scene) unchanged() {
	c.Helper()
	equal(c, all(c, c.coll), c.before)
}

// file returns the path of a file in the directory.
func (c *scene) file(name string) string { return filepath.Join(c.dir, name) }

// ways are changes of a plan: none, so that c is converted in place, and a copy.
var ways = map[string][]func(*plan.Plan){"in place": nil, "copy": {intoNew("c")}}

// work is a conversion of one of the kinds that go on in different ways when they were killed or lost.
type work struct {
	from    uuidrep.Representation
	changes []func(*plan.Plan)
}

var works = map[string]work{
	"in place":              {uuidrep.JavaLegacy, nil},
	"into a new collection": {uuidrep.CSharpLegacy, []func(*plan.Plan){intoNew("c")}},
}

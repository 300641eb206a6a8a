package servertest

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// prepared makes the plan of a database, to the kind with the name, and changes it as a person would. It returns the
// directory.
func prepared(t testing.TB, s *mongotest.Server, to string, changes ...func(*plan.Plan)) (dir string) {
	t.Helper()
	dir = filepath.Dir(planned(t, s, "--to", to))
	changePlan(t, dir, changes...)
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
	var b bytes.Buffer
	if err := plan.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	dumptest.Write(t, filepath.Join(dir, plan.PlanFile), b.Bytes())
}

// convertFields returns a function that makes the decision to convert the fields from a kind, and to leave the
// others. Without fields, it converts all that are stored so. to is "text", or anything else for the kind of the plan.
func convertFields(from, to string, fields ...string) func(*plan.Plan) {
	decision := plan.Convert(from)
	if to == "text" {
		decision += " to text"
	}
	return func(p *plan.Plan) {
		for i := range p.Collections {
			for j := range p.Collections[i].Fields {
				f := &p.Collections[i].Fields[j]
				k, err := kinds.Parse(from)
				if f.Decision = plan.Leave; err == nil && f.Stored == k.Stored() && (len(fields) == 0 || slices.Contains(fields, f.Plain())) {
					f.Decision = decision
				}
			}
		}
	}
}

// trusted returns a function that adds trust to the fields that are converted.
func trusted(fields ...string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		for i := range p.Collections {
			for j := range p.Collections[i].Fields {
				f := &p.Collections[i].Fields[j]
				if _, ok := f.Decision.From(); ok && slices.Contains(fields, f.Plain()) {
					f.Trust = true
				}
			}
		}
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

// carrier inserts a document with a UUID in Java order, for a collection that is copied for another reason. It
// returns the document as it is in standard.
func carrier(t testing.TB, coll *mongo.Collection) bson.D {
	t.Helper()
	u := uuid.New()
	doc := func(r uuidrep.Representation) bson.D {
		return bson.D{{Key: "_id", Value: "carrier"}, {Key: "u", Value: in(u, r)}}
	}
	insert(t, coll, []any{doc(uuidrep.JavaLegacy)})
	return doc(uuidrep.Standard)
}

// setRate sets the rate of a migration.
func setRate(t testing.TB, dir, rate string) {
	t.Helper()
	dumptest.Write(t, filepath.Join(dir, "rate"), []byte(rate))
}

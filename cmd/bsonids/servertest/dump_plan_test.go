package servertest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// convertDump makes the plan of a dump, which decide may change, converts the dump with the exit code, and
// proves it. It returns the directory.
func convertDump(t *testing.T, in, out string, code int, decide func(*plan.Plan), args ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "m.d")
	command(t, nil, append([]string{"plan", dir, "--dump", in}, args...)...).want(t, failure.ExitOK)
	if decide != nil {
		changePlan(t, dir, decide)
	}
	command(t, nil, "apply", dir, "--out", out, "--output", "json").want(t, code)
	command(t, nil, "verify", dir, "--output", "json").want(t, failure.ExitOK)
	return dir
}

// likeServer converts collections on a server and as a dump, by plans that decide changes in the same way. The plans
// have the same fields, evidence, decisions and references. Both conversions have the same counts, exit codes and
// values, and list the same. With into, the only collection of the server is copied.
func likeServer(t *testing.T, s *mongotest.Server, db *mongo.Database, collections map[string][]any, to, into string, decide func(*plan.Plan)) {
	t.Helper()
	var written []dumptest.Collection
	for name, docs := range collections {
		insert(t, db.Collection(name), docs)
		written = append(written, dumptest.Collection{Database: s.Database(), Name: name, Documents: docs})
	}
	dir := t.TempDir()
	server, dump, out := filepath.Join(dir, "s"), filepath.Join(dir, "d"), filepath.Join(dir, "out")
	dumptest.Directory(t, filepath.Join(dir, "dump"), false, written...)
	command(t, s, "plan", server, "--db", s.Database(), "--to", to).want(t, failure.ExitOK)
	command(t, nil, "plan", dump, "--dump", filepath.Join(dir, "dump"), "--to", to).want(t, failure.ExitOK)
	var plans [2]string
	for i, dir := range []string{server, dump} {
		changePlan(t, dir, decide, func(p *plan.Plan) {
			for _, c := range p.Collections {
				plans[i] += fmt.Sprintf("%q %q\n", c.Name, c.Into)
				for _, f := range c.Fields {
					plans[i] += fmt.Sprintf("  %q %v %v %v\n", f.Path, f.Stored, f.Decision, f.Evidence)
				}
			}
			for _, r := range p.References {
				plans[i] += fmt.Sprintf("%q %q\n", r.Between, r.Fields)
			}
		})
	}
	if plans[0] != plans[1] {
		t.Errorf("server\n%s\ndump\n%s", plans[0], plans[1])
	}
	if into != "" {
		changePlan(t, server, func(p *plan.Plan) { p.Collections[0].Into = into })
	}
	applied := func(s target, code int, args ...string) (steps []report.AppliedStep) {
		t.Helper()
		var got struct{ Steps []report.AppliedStep }
		decode(t, command(t, s, append(args, "--output", "json")...).want(t, code).stdout, &got)
		for _, a := range got.Steps {
			a.Into, a.SkipList = "", ""
			steps = append(steps, a)
		}
		return steps
	}
	applied(nil, failure.ExitOK, "apply", dump)
	applied(s, failure.ExitOK, "apply", server)
	d := applied(nil, failure.ExitIncomplete, "apply", dump, "--out", out)
	w := applied(s, failure.ExitIncomplete, applying(server)...)
	if fmt.Sprint(d) != fmt.Sprint(w) || len(d) == 0 {
		t.Errorf("server %v\ndump   %v", w, d)
	}
	var listed []string
	lists, _ := filepath.Glob(filepath.Join(server, "*.skipped.jsonl"))
	for _, path := range lists {
		listed = append(listed, lines(t, path)...)
	}
	ofDump := lines(t, filepath.Join(dump, plan.SkipFile))
	slices.Sort(listed)
	slices.Sort(ofDump)
	if !slices.Equal(listed, ofDump) || len(listed) == 0 {
		t.Errorf("the server lists\n%s\nand the dump\n%s", listed, ofDump)
	}
	command(t, nil, "verify", dump, "--output", "json").want(t, failure.ExitOK)
	command(t, s, "verify", server, "--output", "json").want(t, failure.ExitOK)
	command(t, nil, "status", dump, "--output", "json").want(t, failure.ExitOK)
	for name := range collections {
		b := text(t, filepath.Join(out, s.Database(), name+".bson"))
		if into != "" {
			name = into
		}
		for _, doc := range all(t, db.Collection(name)) {
			if !strings.Contains(b, string(doc)) {
				t.Errorf("%s: the converted dump lacks %v", name, doc)
			}
		}
	}
}

// An awkward collection is converted as a dump as it is into a copy.
func TestDumpLikeCopy(t *testing.T) {
	for _, to := range []string{"javaLegacy", "standard"} {
		s, db := started(t)
		likeServer(t, s, db, map[string][]any{"c": awkward(t, db)}, to, "copied", func(p *plan.Plan) {
			p.Collections = slices.DeleteFunc(p.Collections, func(c plan.Collection) bool { return c.Name != "c" })
			p.Collections[0].Into, p.References = "", nil
			eachField(p, func(f *plan.Field) {
				f.Decision = plan.Leave
				if e, ok := f.In("csharpLegacy"); ok && f.Stored == kinds.Subtype3 && e.By != decide.None && !strings.HasPrefix(f.Path, "in.") {
					f.Decision = plan.Convert("csharpLegacy")
				}
			})
		})
	}
}

// Collections that refer to each other are converted as a dump as they are in place.
func TestDumpLikeServer(t *testing.T) {
	collections := map[string][]any{"few": {bson.D{{Key: "_id", Value: int32(1)}, {Key: "u", Value: in(v4(1), uuidrep.JavaLegacy)}}}}
	for i := range 80 {
		kind := uuidrep.JavaLegacy
		if i == 7 { // fits nothing
			kind = uuidrep.CSharpLegacy
		}
		u := v4(i)
		collections["customers"] = append(collections["customers"], bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: in(u, uuidrep.JavaLegacy)}, {Key: "text", Value: spelling(u, i)}})
		collections["orders"] = append(collections["orders"], bson.D{{Key: "_id", Value: int32(i)}, {Key: "of", Value: in(u, kind)},
			{Key: "items", Value: bson.A{bson.D{{Key: "c", Value: in(v4(i+100), uuidrep.CSharpLegacy)}}, nil, ""}}, {Key: "left", Value: bson.Binary{Subtype: 0, Data: []byte("0123456789abcdef")}}})
	}
	s, db := started(t)
	likeServer(t, s, db, collections, "standard", "", func(p *plan.Plan) {
		eachField(p, func(f *plan.Field) {
			if f.Decision == plan.Unknown {
				f.Decision = plan.Leave // as a person does
			}
		})
	})
}

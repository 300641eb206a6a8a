package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
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

// The awkward collection is converted as a dump as it is into a copy, by the same plan: the counts, the lists,
// the exit codes and the documents are the same.
func TestDumpLikeCopy(t *testing.T) {
	s, db := started(t)
	docs := awkward(t, db)
	insert(t, db.Collection("c"), docs)
	for _, to := range []string{"javaLegacy", "standard"} {
		dir := t.TempDir()
		file := func(name string) string { return filepath.Join(dir, name) }
		dumptest.Directory(t, file("dump"), false, dumptest.Collection{Database: s.Database(), Name: "c", Documents: docs})
		command(t, s, "plan", file("s"), "--db", s.Database(), "--to", to).want(t, failure.ExitOK)
		command(t, nil, "plan", file("d"), "--dump", file("dump"), "--to", to).want(t, failure.ExitOK)
		for _, name := range []string{"s", "d"} {
			changePlan(t, file(name), func(p *plan.Plan) {
				p.Collections = slices.DeleteFunc(p.Collections, func(c plan.Collection) bool { return c.Name != "c" })
				p.References = nil
				for i := range p.Collections[0].Fields {
					f := &p.Collections[0].Fields[i]
					if e, ok := f.In("csharpLegacy"); ok && f.Stored == kinds.Subtype3 && e.By != decide.None && !strings.HasPrefix(f.Path, "in.") {
						f.Decision = plan.Convert("csharpLegacy")
					} else {
						f.Decision = plan.Leave
					}
				}
				if name == "s" {
					p.Collections[0].Into = "copy_" + to
				}
			})
		}
		var steps [2][]report.AppliedStep
		for i, args := range [][]string{slices.Concat([]string{"apply", file("s"), "--write"}, gentle), {"apply", file("d"), "--out", file("out")}} {
			var got struct{ Steps []report.AppliedStep }
			where := target(s)
			if i == 1 {
				where = nil
			}
			decode(t, command(t, where, append(args, "--output", "json")...).want(t, failure.ExitIncomplete).stdout, &got)
			for _, a := range got.Steps {
				a.Into, a.SkipList = "", ""
				steps[i] = append(steps[i], a)
			}
		}
		if fmt.Sprint(steps[0]) != fmt.Sprint(steps[1]) || len(steps[0]) != 1 || steps[0][0].Skipped == 0 {
			t.Errorf("to %s: copy %v\ndump %v", to, steps[0], steps[1])
		}
		lists, _ := filepath.Glob(file("s") + "/*.skipped.jsonl")
		var listed [2][]string
		for i, path := range []string{lists[0], filepath.Join(file("d"), plan.SkipFile)} {
			b := text(t, path)
			listed[i] = strings.Split(string(b), "\n")
			slices.Sort(listed[i])
		}
		if !slices.Equal(listed[0], listed[1]) {
			t.Errorf("to %s: the copy lists\n%s\nand the dump\n%s", to, listed[0], listed[1])
		}
		b := text(t, filepath.Join(file("out"), s.Database(), "c.bson"))
		for _, doc := range all(t, db.Collection("copy_"+to)) {
			if !strings.Contains(string(b), string(doc)) {
				t.Errorf("to %s: the converted dump lacks %v", to, doc)
			}
		}
		command(t, nil, "verify", file("d"), "--output", "json").want(t, failure.ExitOK)
		drop(t, db.Collection("copy_"+to))
	}
}

// The plan of a dump has the fields, the evidence, the decisions and the references of the plan of a server with
// the same documents. Both conversions have the same counts, exit codes and values, and list the same.
func TestDumpLikeServer(t *testing.T) {
	s, db := started(t)
	collections := map[string][]any{}
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
	collections["few"] = []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "u", Value: in(v4(1), uuidrep.JavaLegacy)}}}
	var written []dumptest.Collection
	for name, docs := range collections {
		insert(t, db.Collection(name), docs)
		written = append(written, dumptest.Collection{Database: s.Database(), Name: name, Documents: docs})
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	dumptest.Directory(t, file("dump"), false, written...)
	command(t, s, "plan", file("s"), "--db", s.Database()).want(t, failure.ExitOK)
	command(t, nil, "plan", file("d"), "--dump", file("dump")).want(t, failure.ExitOK)
	var plans [2]string
	for i, name := range []string{"s", "d"} {
		path := filepath.Join(file(name), plan.PlanFile)
		b := text(t, path)
		text := strings.ReplaceAll(string(b), "decision: unknown", "decision: leave") // as a person does
		put(t, path, text)
		p, err := plan.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Collections {
			plans[i] += fmt.Sprintf("%q %q\n", c.Name, c.Into)
			for _, f := range c.Fields {
				plans[i] += fmt.Sprintf("  %q %v %v %v\n", f.Path, f.Stored, f.Decision, f.Evidence)
			}
		}
		for _, r := range p.References {
			plans[i] += fmt.Sprintf("%q %q\n", r.Between, r.Fields)
		}
	}
	if plans[0] != plans[1] {
		t.Errorf("server\n%s\ndump\n%s", plans[0], plans[1])
	}
	applied := func(r result) (steps []report.AppliedStep) {
		t.Helper()
		var got struct{ Steps []report.AppliedStep }
		decode(t, r.stdout, &got)
		for i := range got.Steps {
			got.Steps[i].SkipList = ""
		}
		return got.Steps
	}
	command(t, nil, "apply", file("d"), "--output", "json").want(t, failure.ExitOK)
	command(t, s, "apply", file("s"), "--output", "json").want(t, failure.ExitOK)
	d := applied(command(t, nil, "apply", file("d"), "--out", file("out"), "--output", "json").want(t, failure.ExitIncomplete))
	w := applied(command(t, s, append([]string{"apply", file("s"), "--write", "--output", "json"}, gentle...)...).want(t, failure.ExitIncomplete))
	if fmt.Sprint(d) != fmt.Sprint(w) || len(d) != 3 {
		t.Errorf("server %v\ndump   %v", w, d)
	}
	list := text(t, filepath.Join(file("d"), plan.SkipFile))
	lists, _ := filepath.Glob(filepath.Join(file("s"), "*.skipped.jsonl"))
	for _, l := range lists {
		b, _ := os.ReadFile(l)
		if !strings.Contains(string(list), string(b)) {
			t.Errorf("the dump lists\n%s\nand the server\n%s", list, b)
		}
	}
	command(t, nil, "verify", file("d"), "--output", "json").want(t, failure.ExitOK)
	command(t, s, "verify", file("s"), "--output", "json").want(t, failure.ExitOK)
	command(t, nil, "status", file("d"), "--output", "json").want(t, failure.ExitOK)
	for name := range collections {
		b := text(t, filepath.Join(file("out"), s.Database(), name+".bson"))
		for _, doc := range all(t, db.Collection(name)) {
			if !strings.Contains(string(b), string(doc)) {
				t.Errorf("%s: the converted dump lacks %v", name, doc)
			}
		}
	}
}

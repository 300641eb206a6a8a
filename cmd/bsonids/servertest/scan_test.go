package servertest

import (
	"fmt"
	"html"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/uuidrep"
)

// The collection holds a thousand random UUIDs in each representation, and bytes without version
// bits.
func TestScan(t *testing.T) {
	s, db := started(t)
	for _, r := range legacy {
		var docs []any
		for range 1000 {
			docs = append(docs, bson.D{{Key: "id", Value: in(uuid.New(), r)}, {Key: "list", Value: bson.A{in(uuid.New(), uuidrep.Standard), in(uuid.New(), r)}}})
		}
		insert(t, db.Collection(r.String()), docs)
	}
	var docs []any
	for i := range 1000 {
		docs = append(docs, bson.D{{Key: "sum", Value: in(checksum(i), uuidrep.JavaLegacy)}, {Key: "go", Value: in(uuid.New(), uuidrep.Unspecified)}, {Key: "text", Value: uuid.NewString()}})
	}
	insert(t, db.Collection("others"), docs)
	fields := scanned(t, s, "--all")
	for _, r := range legacy {
		for _, path := range []string{" id", " list[]"} {
			f := fields[r.String()+path]
			if f.Counts.Legacy != 1000 || len(f.Evidence) != 1 || f.Evidence[0].Verdict != scan.Verdict(r.String()) {
				t.Errorf("%v%s: %+v", r, path, f)
			}
		}
	}
	if f := fields["others sum"]; f.Counts.Legacy != 1000 || f.Evidence[0].Verdict != scan.Undetermined {
		t.Errorf("%+v", f)
	}
	if f := fields["others go"]; f.Counts.Generic != 1000 || f.Evidence[0].Verdict != "generic" {
		t.Errorf("%+v", f)
	}
	if f := fields["others text"]; f.Counts.Text != 1000 {
		t.Errorf("%+v", f)
	}
	command(t, s, "scan", "--db", s.Database(), "-o", "html").want(t, failure.ExitOK).prints(t, "<!DOCTYPE html>")
	many := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "count" {
			return ofMany(r)
		}
		return pass()
	})
	command(t, many, "scan", "--db", s.Database(), "--collection", "others").want(t, failure.ExitOK).prints(t, "1000 of about 20000")
	command(t, s, "scan", "--db", s.Database(), "--collection", "nowhere").want(t, failure.ExitUsage)
	command(t, s, "scan", "--db", s.Database()+"_").want(t, failure.ExitUsage).says(t, "does not exist")
}

// ofMany is the answer for a collection that seems to have more documents than scan reads of a sample.
func ofMany(r request) []byte { return r.ok(bson.E{Key: "n", Value: int32(20_000)}) }

// Views and the collections of the server are scanned if they are named, and views that are not read are
// named, unless the user named the collections. The server is asked for
// names only, which it gives to a user who may read some collections only.
func TestScanWhat(t *testing.T) {
	s, db := started(t)
	for _, name := range []string{"c", "orders_v", "w"} {
		insert(t, db.Collection(name), []any{bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.Standard)}}})
	}
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() != "listCollections" {
			return pass()
		}
		var asked struct{ NameOnly, AuthorizedCollections bool }
		if err := bson.Unmarshal(r.command, &asked); err != nil || !asked.NameOnly || !asked.AuthorizedCollections {
			t.Errorf("%v: %v", err, r.command)
		}
		var listed []any
		for _, c := range [][2]string{{"c", "collection"}, {"orders_v", "view"}, {"w", "timeseries"}, {"system.views", "collection"}} {
			listed = append(listed, bson.D{{Key: "name", Value: c[0]}, {Key: "type", Value: c[1]}})
		}
		return r.cursor("db.$cmd.listCollections", listed...)
	})
	for named, want := range map[string][]string{"": {"c", "w"}, "orders_v": {"orders_v"}, "c,system.views": {"c", "system.views"}} {
		args := []string{"scan", "--db", s.Database(), "--output", "json"}
		if named != "" {
			args = append(args, "--collection", named)
		}
		r := command(t, p, args...).want(t, failure.ExitOK)
		var report struct{ Collections []struct{ Namespace string } }
		decode(t, r.stdout, &report)
		var got []string
		for _, c := range report.Collections {
			got = append(got, strings.TrimPrefix(c.Namespace, s.Database()+"."))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", named, got, want)
		}
		if named == "" {
			r.says(t, "views are scanned only", "orders_v")
		} else if strings.Contains(r.problems(), "views are") {
			t.Error(r.stderr)
		}
	}
	command(t, p, "scan", "--db", s.Database(), "--collection", "none").want(t, failure.ExitUsage)
}

// If a server cannot sample, the first documents are read, and a warning says so. A server that
// refuses to use its disk, as in read-only mode, or whose random cursor failed by chance, can
// sample. A lost server does not mean that it cannot.
func TestScanSample(t *testing.T) {
	s, db := started(t)
	fill(t, db.Collection("c"), 0, 30, uuidrep.Standard, v4)
	for _, tt := range []struct {
		name  string
		codes []int32 // of the answers to $sample; 0 for one with documents
		disk  bool    // whether only requests that allow the use of the disk get these answers
		code  int
		want  string
	}{
		{"cannot sample", []int32{40324, 40324}, false, failure.ExitOK, `"mode": "first"`},
		{"takes too long", []int32{50, 50}, false, failure.ExitOK, `"mode": "first"`},
		{"no disk", []int32{20, 20}, true, failure.ExitOK, `"mode": "sample"`},
		{"by chance", []int32{28799, 0}, false, failure.ExitOK, `"mode": "sample"`},
		{"lost", []int32{11600, 11600, 11600, 11600}, false, failure.ExitUnreachable, ""},
		{"no privilege", []int32{13}, false, failure.ExitDenied, ""},
	} {
		asked := 0
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			switch r.name() {
			case "aggregate":
			case "count":
				return ofMany(r)
			default:
				return pass()
			}
			var code int32
			if asked < len(tt.codes) {
				code = tt.codes[asked]
			}
			asked++
			if disk, _ := r.command.Lookup("allowDiskUse").BooleanOK(); code == 0 || tt.disk && !disk {
				return r.cursor(s.Database()+".c", bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.Standard)}})
			}
			return r.fail(code, "no")
		})
		r := command(t, p, "scan", "--db", s.Database(), "-o", "json").want(t, tt.code).prints(t, tt.want)
		if (tt.want == "") != (r.stdout == "") {
			t.Errorf("%s: %s", tt.name, r.stdout)
		}
	}
}

// scan fails on what it is asked to fail on, names it, and writes the report nevertheless.
func TestScanFailOn(t *testing.T) {
	s, db := started(t)
	fill(t, db.Collection("old"), 0, 60, uuidrep.JavaLegacy, v4)
	fill(t, db.Collection("new"), 0, 60, uuidrep.Standard, v4)
	scan := func(code int, args ...string) result {
		t.Helper()
		return command(t, s, append([]string{"scan", "--db", s.Database(), "--all", "--fail-on"}, args...)...).want(t, code)
	}
	for _, failOn := range []string{"mixed,generic", "generic"} {
		if r := scan(failure.ExitOK, failOn); r.problems() != "" {
			t.Errorf("%s: %s", failOn, r.stderr)
		}
	}
	r := scan(failure.ExitIncomplete, "mixed,legacy", "-o", "json").says(t, s.Database()+".old a is legacy")
	if strings.Contains(r.problems(), ".new") || strings.Contains(r.problems(), "mixed") || strings.Count(r.stdout, `"namespace": `) != 2 {
		t.Error(r.stdout, r.stderr)
	}
	scan(failure.ExitOK, "legacy", "--collection", "new")
	for _, bad := range []string{"legcay", "legacy,", ""} {
		scan(failure.ExitUsage, bad)
	}
}

// The commands of the page are commands that work.
func TestPageCommands(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	s, db := started(t)
	fill(t, db.Collection("orders"), 0, 40, uuidrep.JavaLegacy, v4)
	fill(t, db.Collection("go"), 0, 40, uuidrep.Unspecified, v4)
	var docs []any
	for i := range 40 {
		docs = append(docs, bson.D{{Key: "_id", Value: in(v4(i), uuidrep.CSharpLegacy)}, {Key: "sum", Value: bson.Binary{Subtype: 3, Data: []byte(fmt.Sprintf("checksum %07d", i*i))}},
			{Key: "odd, $x name", Value: in(v4(i), uuidrep.CSharpLegacy)}})
	}
	insert(t, db.Collection("it's odd"), docs)
	r := command(t, s, "scan", "--db", s.Database(), "--all", "-o", "html").want(t, failure.ExitOK)
	commands := regexp.MustCompile(`<div class="command"><code>(.*?)</code>`).FindAllStringSubmatch(r.stdout, -1)
	if len(commands) != 5 {
		t.Errorf("%d commands: %q", len(commands), commands)
	}
	for _, c := range commands {
		line := html.UnescapeString(c[1])
		words, err := exec.Command(sh, "-c", `bsonids() { printf '%s\0' "$@"; }; `+line).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		args := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
		if i := slices.Index(args, "migration.d"); i >= 0 {
			args[i] = filepath.Join(t.TempDir(), "migration.d")
		}
		command(t, s, args...).want(t, failure.ExitOK)
	}
}

package servertest

import (
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
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
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// The collection holds a thousand random UUIDs in each representation, and bytes without version
// bits.
func TestScan(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	for _, r := range legacy {
		var docs []any
		for range 1000 {
			docs = append(docs, bson.D{{Key: "id", Value: in(uuid.New(), r)}, {Key: "list", Value: bson.A{in(uuid.New(), uuidrep.Standard), in(uuid.New(), r)}}})
		}
		insert(t, db.Collection(r.String()), docs)
	}
	var docs []any
	for range 1000 {
		var sum [16]byte
		for i := range sum {
			sum[i] = byte(rand.Uint32())
		}
		docs = append(docs, bson.D{{Key: "sum", Value: in(sum, uuidrep.JavaLegacy)}, {Key: "go", Value: in(uuid.New(), uuidrep.Unspecified)}, {Key: "text", Value: uuid.NewString()}})
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
	if r := command(t, s, "scan", "--db", s.Database(), "-o", "html").want(t, failure.ExitOK); !strings.Contains(r.stdout, "<!DOCTYPE html>") {
		t.Error(r.stdout)
	}
	if r := command(t, many(t, s), "scan", "--db", s.Database(), "--collection", "others").want(t, failure.ExitOK); !strings.Contains(r.stdout, "1000 of about 20000") {
		t.Error(r.stdout)
	}
	command(t, s, "scan", "--db", s.Database(), "--collection", "nowhere").want(t, failure.ExitUsage)
}

// many is the server, on which each collection seems to have more documents than scan reads of a sample.
func many(t *testing.T, s *mongotest.Server) target {
	return startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "count" {
			return ofMany(r)
		}
		return pass()
	})
}

func ofMany(r request) []byte {
	return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: int32(20_000)}})
}

// Views and the collections of the server are scanned if they are named. The server is asked for
// names only, which it gives to a user who may read some collections only.
func TestScanWhat(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	for _, name := range []string{"c", "v", "w"} {
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
		for _, c := range [][2]string{{"c", "collection"}, {"v", "view"}, {"w", "timeseries"}, {"system.views", "collection"}} {
			listed = append(listed, bson.D{{Key: "name", Value: c[0]}, {Key: "type", Value: c[1]}})
		}
		return r.cursor("db.$cmd.listCollections", listed...)
	})
	scan := []string{"scan", "--db", s.Database(), "--output", "json"}
	for _, tt := range []struct {
		args, want []string
	}{
		{nil, []string{"c", "w"}},
		{[]string{"--collection", "v"}, []string{"v"}},
		{[]string{"--collection", "c,system.views"}, []string{"c", "system.views"}},
	} {
		r := command(t, p, append(scan, tt.args...)...).want(t, failure.ExitOK)
		var report struct{ Collections []struct{ Namespace string } }
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range report.Collections {
			got = append(got, strings.TrimPrefix(c.Namespace, s.Database()+"."))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.args, got, tt.want)
		}
	}
	command(t, p, append(scan, "--collection", "none")...).want(t, failure.ExitUsage)
	if r := command(t, s, "scan", "--db", s.Database()+"_").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "does not exist") {
		t.Error(r.stderr)
	}
}

// If a server cannot sample, the first documents are read, and a warning says so. A server that
// refuses to use its disk, as in read-only mode, or whose random cursor failed by chance, can
// sample. A lost server does not mean that it cannot.
func TestScanSample(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	for range 30 {
		insert(t, coll, []any{bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.Standard)}}})
	}
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
			if disk, _ := r.command.Lookup("allowDiskUse").BooleanOK(); tt.disk && !disk {
				code = 0
			}
			if code == 0 {
				return r.cursor(s.Database()+".c", bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.Standard)}})
			}
			return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "errmsg", Value: "no"}})
		})
		r := command(t, p, "scan", "--db", s.Database(), "-o", "json")
		if r.code != tt.code || !strings.Contains(r.stdout, tt.want) || (tt.want == "") != (r.stdout == "") {
			t.Errorf("%s: exit code %d, want %d with %s\n%s%s", tt.name, r.code, tt.code, tt.want, r.stdout, r.stderr)
		}
	}
}

func TestScanFailOn(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	fill(t, db.Collection("old"), 0, 60, uuidrep.JavaLegacy, v4)
	fill(t, db.Collection("new"), 0, 60, uuidrep.Standard, v4)
	args := []string{"scan", "--db", s.Database(), "--all"}
	for _, failOn := range []string{"mixed,generic", "generic"} {
		if r := command(t, s, append(args, "--fail-on", failOn)...).want(t, failure.ExitOK); r.problems() != "" {
			t.Errorf("%s: %s", failOn, r.stderr)
		}
	}
	r := command(t, s, append(args, "--fail-on", "mixed,legacy", "-o", "json")...).want(t, failure.ExitIncomplete)
	if !strings.Contains(r.problems(), s.Database()+".old a is legacy") || strings.Contains(r.problems(), ".new") || strings.Contains(r.problems(), "mixed") {
		t.Error(r.stderr)
	}
	var report scan.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || len(report.Collections) != 2 {
		t.Errorf("%v: %s", err, r.stdout)
	}
	command(t, s, append(args, "--collection", "new", "--fail-on", "legacy")...).want(t, failure.ExitOK)
	for _, bad := range []string{"legcay", "legacy,", ""} {
		command(t, s, append(args, "--fail-on", bad)...).want(t, failure.ExitUsage)
	}
}

// The commands of the page are commands that work.
func TestPageCommands(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	s := mongotest.Start(t)
	db := connect(t, s)
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

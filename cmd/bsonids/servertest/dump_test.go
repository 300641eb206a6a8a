package servertest

import (
	"fmt"
	"os/exec"
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
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// The JSON documents about dumps have their schema, also with examples, skipped values, constants
// and findings. The function command checks that.
func TestDumpSchemas(t *testing.T) {
	var docs []any
	for i := range 60 {
		kind := uuidrep.JavaLegacy
		if i%5 == 0 {
			kind = uuidrep.CSharpLegacy
		}
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: in(v4(i), kind)}})
	}
	dir := t.TempDir()
	path, out := filepath.Join(dir, "dump"), filepath.Join(dir, "out")
	metadata := `{"options":{"validator":{"u":{"$ne":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"03"}}}}},"indexes":[]}`
	dumptest.Directory(t, path, false, dumptest.Collection{Database: "d", Name: "c", Metadata: metadata, Documents: docs},
		dumptest.Collection{Database: "d", Name: "forms", Documents: []any{bson.D{{Key: "_id", Value: 1}, {Key: "text", Value: spelling(v4(99), 0)}, {Key: "user", Value: bson.D{{Key: "uuid", Value: in(v4(98), uuidrep.Unspecified)}}}}}},
		dumptest.Collection{Database: "admin", Name: "system.version", Documents: docs[:1]})
	command(t, nil, "scan", "--dump", path, "--output", "json").want(t, failure.ExitOK).prints(t, `"form": "goStruct"`)
	m := convertDump(t, path, out, failure.ExitIncomplete, convertFields("javaLegacy", "u"))
	command(t, nil, "apply", m, "--output", "json").want(t, failure.ExitIncomplete).prints(t, `"constantsLeft": 1`)
	dumptest.Write(t, filepath.Join(out, "d", "c.bson"), dumptest.BSON(t, docs[1:]...))
	command(t, nil, "verify", m, "--output", "json").want(t, failure.ExitIncomplete).prints(t, `"findings"`)
}

// pythonDump writes a BSON file and an archive with the BSON library of PyMongo, and the checksum of
// the archive bit by bit, as the catalogue of CRC algorithms describes CRC-64/XZ.
const pythonDump = `
import random, struct, sys, uuid, bson
from bson.binary import JAVA_LEGACY
from bson.codec_options import CodecOptions
from bson.int64 import Int64
def crc64(data):
    crc = 0xffffffffffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xc96c5795d7870f42 if crc & 1 else 0)
    return crc ^ 0xffffffffffffffff
java = CodecOptions(uuid_representation=JAVA_LEGACY)
def id(i): # the same for each i, and as random as one of a generator
    return uuid.UUID(int=random.Random(i).getrandbits(128), version=4)
docs = [bson.encode({'_id': id(i), 'n': i, 'in': {'l': [id(i + 500)]}}, codec_options=java) for i in range(100)]
open(sys.argv[1] + '/c.bson', 'wb').write(b''.join(docs))
end = b'\xff\xff\xff\xff'
with open(sys.argv[1] + '/archive', 'wb') as f:
    f.write(struct.pack('<I', 0x8199e26d))
    f.write(bson.encode({'concurrent_collections': 1, 'version': '0.1', 'server_version': '8.0.0', 'tool_version': '100.0'}))
    f.write(bson.encode({'db': 'd', 'collection': 'c', 'metadata': '{}', 'size': 0, 'type': 'collection'}) + end)
    for part in (docs[:70], docs[70:]):
        f.write(bson.encode({'db': 'd', 'collection': 'c', 'EOF': False, 'CRC': Int64(0)}) + b''.join(part) + end)
    crc = struct.unpack('<q', struct.pack('<Q', crc64(b''.join(docs))))[0]
    f.write(bson.encode({'db': 'd', 'collection': 'c', 'EOF': True, 'CRC': Int64(crc)}) + end)
`

// pythonCheck reads them after the conversion.
const pythonCheck = `
from bson.binary import STANDARD
standard = CodecOptions(uuid_representation=STANDARD)
def check(docs):
    docs = list(docs)
    assert len(docs) == 100, len(docs)
    for d in docs:
        assert d['_id'] == id(d['n']) and d['in']['l'] == [id(d['n'] + 500)], d
check(bson.decode_file_iter(open(sys.argv[2] + '/c.bson', 'rb'), codec_options=standard))
with open(sys.argv[2] + '/archive', 'rb') as f:
    b = f.read()
at, body, blocks = 4, b'', 0
while at < len(b):
    header = None
    while b[at:at+4] != end:
        size = struct.unpack('<i', b[at:at+4])[0]
        doc = b[at:at+size]
        at += size
        if header is None:
            header = bson.decode(doc)
        elif blocks > 0:
            body += doc
    at += 4
    blocks += 1
    if header.get('EOF'):
        assert header['CRC'] % 2**64 == crc64(body), header
assert blocks == 4, blocks
check(bson.decode_all(body, codec_options=standard))
`

// Another implementation of BSON, and of the checksum of an archive, writes a dump and reads its
// conversion.
func TestDumpPyMongo(t *testing.T) {
	py := mongotest.Python(t)
	from, to := t.TempDir(), t.TempDir()
	if out, err := exec.Command(py, "-c", pythonDump, from).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"c.bson", "archive"} {
		convertDump(t, filepath.Join(from, name), filepath.Join(to, name), failure.ExitOK, nil)
	}
	if out, err := exec.Command(py, "-c", pythonDump+pythonCheck, from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

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
	command(t, nil, "verify", dir, "--output", "json").want(t, code)
	return dir
}

// appliedSteps runs apply, and returns what it says, without paths and the names of copies.
func appliedSteps(t *testing.T, s target, code int, args ...string) []migrate.AppliedStep {
	t.Helper()
	var got struct{ Steps []migrate.AppliedStep }
	decode(t, command(t, s, append(args, "--output", "json")...).want(t, code).stdout, &got)
	for i := range got.Steps {
		got.Steps[i].Into, got.Steps[i].SkipList = "", ""
	}
	return got.Steps
}

// likeServer converts collections on a server and as a dump, by plans that decide changes in the same way. The plans
// have the same fields, evidence, decisions and references. Both conversions have the same counts, exit codes and
// values, and list the same. With into, the only collection of the server is copied.
func likeServer(t *testing.T, s *mongotest.Server, db *mongo.Database, collections map[string][]any, into string, decide func(*plan.Plan)) {
	t.Helper()
	var written []dumptest.Collection
	for name, docs := range collections {
		insert(t, db.Collection(name), docs)
		written = append(written, dumptest.Collection{Database: s.Database(), Name: name, Documents: docs})
	}
	dir := t.TempDir()
	server, dump, out := filepath.Join(dir, "s"), filepath.Join(dir, "d"), filepath.Join(dir, "out")
	dumptest.Directory(t, filepath.Join(dir, "dump"), false, written...)
	command(t, s, "plan", server, "--db", s.Database()).want(t, failure.ExitOK)
	command(t, nil, "plan", dump, "--dump", filepath.Join(dir, "dump")).want(t, failure.ExitOK)
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
	appliedSteps(t, nil, failure.ExitIncomplete, "apply", dump)
	appliedSteps(t, s, failure.ExitIncomplete, "apply", server)
	d := appliedSteps(t, nil, failure.ExitIncomplete, "apply", dump, "--out", out)
	w := appliedSteps(t, s, failure.ExitIncomplete, applying(server)...)
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
	command(t, nil, "verify", dump, "--output", "json").want(t, failure.ExitIncomplete)
	command(t, s, "verify", server, "--output", "json").want(t, failure.ExitIncomplete)
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
	s, db := started(t)
	likeServer(t, s, db, map[string][]any{"c": awkward(t, db)}, "copied", func(p *plan.Plan) {
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
	likeServer(t, s, db, collections, "", func(p *plan.Plan) {
		eachField(p, func(f *plan.Field) {
			if f.Decision == plan.Unknown {
				f.Decision = plan.Leave // as a person does
			}
		})
	})
}

// pythonForms writes a BSON file with text in the spellings of Python's uuid module, under names that
// an update cannot address, and with documents of Go structs.
const pythonForms = `
import sys, uuid, bson
from bson.binary import Binary, UuidRepresentation as R
from bson.codec_options import CodecOptions
ids = [uuid.UUID(int=i * 0x9e3779b97f4a7c15f39cc0605cedc834 % 2**128, version=4) for i in range(1, 41)]
def spelled(u, i):
    return [str(u), u.hex.upper(), '{%s}' % u, u.urn][i % 4]
def doc(u, i, one, go):
    return {'_id': one(i), 'x.y': one(i + 1), '$odd': [one(i + 2), 7, None], 'by': {u.hex: one(i)}, 'go': go, 'keep': spelled(u, i)}
`

const pythonWriteForms = pythonForms + `
with open(sys.argv[1], 'wb') as f:
    for i, u in enumerate(ids):
        f.write(bson.encode(doc(u, i, lambda n: spelled(u, n), [{'uuid': Binary(u.bytes, 0)}, {'uuid': Binary(bytes(16), 0), 'valid': False}])))
`

// pythonReadForms reads it after both conversions.
const pythonReadForms = pythonForms + `
def check(file, r, one):
    got = bson.decode_all(open(file, 'rb').read(), CodecOptions(uuid_representation=r))
    assert len(got) == len(ids), len(got)
    for i, (u, g) in enumerate(zip(ids, got)):
        want = doc(u, i, lambda n: one(u), [u, None])
        assert g == want and list(g) == list(want), (g, want)
check(sys.argv[1], R.STANDARD, lambda u: u)
`

// Another implementation of BSON and of UUIDs writes text and documents of Go structs, and reads what
// they are converted to.
func TestDumpFormsPyMongo(t *testing.T) {
	py := mongotest.Python(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if out, err := exec.Command(py, "-c", pythonWriteForms, file("text.bson")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, step := range [][]string{
		{"text.bson", "binary.bson", "text", "_id,x.y,$odd,by.*"},
		{"binary.bson", "all.bson", "goStruct", "go"},
	} {
		convertDump(t, file(step[0]), file(step[1]), failure.ExitOK, func(p *plan.Plan) {
			convertFields(step[2], strings.Split(step[3], ",")...)(p)
			accepted(p) // all fields have the same values
		}, "--db", "d", "--collection", "c")
	}
	if out, err := exec.Command(py, "-c", pythonReadForms, file("all.bson")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

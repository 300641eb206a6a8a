package servertest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
)

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

// pythonReadForms reads it after both conversions, and after the way back to text.
const pythonReadForms = pythonForms + `
def check(file, r, one):
    got = bson.decode_all(open(file, 'rb').read(), CodecOptions(uuid_representation=r))
    assert len(got) == len(ids), len(got)
    for i, (u, g) in enumerate(zip(ids, got)):
        want = doc(u, i, lambda n: one(u), [u, None])
        assert g == want and list(g) == list(want), (g, want)
check(sys.argv[1], R.JAVA_LEGACY, lambda u: u)
check(sys.argv[2], R.JAVA_LEGACY, str)
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
		{"text.bson", "binary.bson", "text", "javaLegacy", "_id,x.y,$odd,by.*"},
		{"binary.bson", "all.bson", "goStruct", "javaLegacy", "go"},
		{"all.bson", "back.bson", "javaLegacy", "text", "_id,x.y,$odd,by.*"},
	} {
		to := "javaLegacy"
		if step[3] == "text" {
			to = "text"
		}
		convertDump(t, file(step[0]), file(step[1]), failure.ExitOK, func(p *plan.Plan) {
			convertFields(step[2], to, strings.Split(step[4], ",")...)(p)
			accepted(p) // all fields have the same values
		}, "--db", "d", "--collection", "c", "--to", "javaLegacy")
	}
	if out, err := exec.Command(py, "-c", pythonReadForms, file("all.bson"), file("back.bson")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

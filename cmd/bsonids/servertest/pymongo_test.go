package servertest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

const pymongo = `
import sys, uuid
from pymongo import MongoClient
from bson.binary import STANDARD, PYTHON_LEGACY, JAVA_LEGACY, CSHARP_LEGACY
from bson.codec_options import CodecOptions
db = MongoClient(sys.argv[1])[sys.argv[2]]
def coll(name, rep):
    return db.get_collection(name, codec_options=CodecOptions(uuid_representation=rep))
reps = {'standard': STANDARD, 'pythonLegacy': PYTHON_LEGACY, 'javaLegacy': JAVA_LEGACY, 'csharpLegacy': CSHARP_LEGACY}
for name, rep in reps.items():
    coll(name, rep).insert_many([{'_id': i, 'id': uuid.uuid4(), 'at': uuid.uuid1(), 'in': {'l': [uuid.uuid4()]}} for i in range(1000)])
for rep in (JAVA_LEGACY, CSHARP_LEGACY, STANDARD):
    coll('mixed', rep).insert_many([{'id': uuid.uuid4()} for i in range(300)])
coll('few', JAVA_LEGACY).insert_many([{'_id': i, 'id': uuid.UUID(int=i << 64 | i)} for i in range(1, 61)])
`

// apply converts what another driver wrote, in each representation and mixed. That driver then
// reads the same UUIDs.
func TestPyMongo(t *testing.T) {
	py := mongotest.Python(t)
	s := mongotest.Start(t)
	if out, err := exec.Command(py, "-c", pymongo, s.URI(), s.Database()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fields := scanned(t, s, "--all")
	for _, r := range legacy {
		for _, path := range []string{" id", " at", " in.l[]"} {
			want := r.String()
			if path == " at" && r != uuidrep.JavaLegacy { // version 1, or a sequential GUID of SQL Server in the other order
				want = "undetermined"
			}
			if f := fields[r.String()+path]; f.Counts.Legacy != 1000 || f.Evidence[0].Verdict != scan.Verdict(want) {
				t.Errorf("%v%s: %+v", r, path, f)
			}
		}
	}
	if f := fields["standard id"]; f.Counts.Standard != 1000 || len(f.Evidence) != 0 {
		t.Errorf("%+v", f)
	}
	if f := fields["mixed id"]; f.Counts.Standard != 300 || f.Evidence[0].Verdict != "mixed" {
		t.Errorf("%+v", f)
	}
	if f := fields["few id"]; f.Evidence[0].Verdict != scan.Undetermined {
		t.Errorf("%+v", f)
	}

	dir := filepath.Dir(planned(t, s, "--collection", "few"))
	changePlan(t, dir, convertFields("javaLegacy", ""), trusted("id"))
	command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
	check := `
import sys, uuid
from pymongo import MongoClient
from bson.binary import STANDARD
from bson.codec_options import CodecOptions
db = MongoClient(sys.argv[1])[sys.argv[2]]
docs = list(db.get_collection('few', codec_options=CodecOptions(uuid_representation=STANDARD)).find())
assert len(docs) == 60
for d in docs:
    assert d['id'] == uuid.UUID(int=d['_id'] << 64 | d['_id']), d
raw = list(db.get_collection('few').find({'id': {'$type': 5}}))
assert len(raw) == 60
`
	if out, err := exec.Command(py, "-c", check, s.URI(), s.Database()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

package servertest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
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
	m := convertDump(t, path, out, failure.ExitIncomplete, convertFields("javaLegacy", "", "u"))
	command(t, nil, "apply", m, "--output", "json").want(t, failure.ExitOK).prints(t, `"constantsLeft": 1`)
	dumptest.Write(t, filepath.Join(out, "d", "c.bson"), dumptest.BSON(t, docs[1:]...))
	command(t, nil, "verify", m, "--output", "json").want(t, failure.ExitIncomplete).prints(t, `"findings"`)
}

// pythonDump writes a BSON file and an archive with the BSON library of PyMongo, and the checksum of
// the archive bit by bit, as the catalogue of CRC algorithms describes CRC-64/XZ.
const pythonDump = `
import struct, sys, uuid, bson
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
def id(i): # any version 4; the bits beside the version and the variant are those of i
    return uuid.UUID(int=(i * 0x9e3779b97f4a7c15f39cc0605cedc834 % 2**128) & ~(0xffff << 64 | 0xff << 56) | (0x4000 | i >> 6) << 64 | (0x80 | i & 63) << 56)
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

package servertest

import (
	"bufio"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// held counts the values of the field a that are converted from the given UUIDs, and those that are
// as they were. Any other value is an error.
func held(t testing.TB, coll *mongo.Collection, ids []uuid.UUID, first int, from uuidrep.Representation) (converted, same int) {
	t.Helper()
	docs := all(t, coll)
	for i, u := range ids {
		subtype, data := docs[fmt.Sprintf(`{"$numberInt":"%d"}`, first+i)].Lookup("a").Binary()
		switch {
		case subtype == 4 && [16]byte(data) == u:
			converted++
		case subtype == 3 && [16]byte(data) == from.Permute(u):
			same++
		default:
			t.Errorf("document %d: subtype %d, %x, which is neither converted from %s nor as it was", first+i, subtype, data, from)
		}
	}
	return converted, same
}

// fill inserts documents with the UUIDs in the field a, and returns the UUIDs.
func fill(t testing.TB, coll *mongo.Collection, first, n int, r uuidrep.Representation, of func(int) uuid.UUID) []uuid.UUID {
	t.Helper()
	var docs []any
	var ids []uuid.UUID
	for i := range n {
		u := of(i)
		ids = append(ids, u)
		docs = append(docs, bson.D{{Key: "_id", Value: int32(first + i)}, {Key: "a", Value: in(u, r)}})
	}
	insert(t, coll, docs)
	return ids
}

func checksum(i int) uuid.UUID { return md5.Sum(fmt.Append(nil, "file", i)) }

type skipLine struct {
	Collection string
	ID         json.RawMessage `json:"_id"`
	Path       string
	Value      json.RawMessage
	Reason     string
}

func skipLines(t testing.TB, path string) []skipLine {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []skipLine
	for s := bufio.NewScanner(f); s.Scan(); {
		var l skipLine
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", s.Bytes(), err)
		}
		out = append(out, l)
	}
	return out
}

// Hashes are not evidence for an order: none is converted, in place or into a new collection, and
// the command fails.
func TestHashesAreNotConverted(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	ids := fill(t, coll, 0, 200, uuidrep.JavaLegacy, checksum)
	before := all(t, coll)
	for _, from := range []string{"javaLegacy", "csharpLegacy", "pythonLegacy"} {
		for _, changes := range [][]func(*plan.Plan){nil, {intoNew("c")}} {
			dir := prepared(t, s, "standard", append([]func(*plan.Plan){convertFields(from, "")}, changes...)...)
			command(t, s, "apply", dir, "--write").want(t, failure.ExitUsage).says(t, "nothing in the values tells that they are "+from)
		}
	}
	equal(t, all(t, coll), before)
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("a"))
	command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
	if converted, _ := held(t, coll, ids, 0, uuidrep.JavaLegacy); converted != len(ids) {
		t.Errorf("%d of %d values converted", converted, len(ids))
	}
}

// A few values in another order are left as they are and listed. They are converted from their own
// order later.
func TestMinorityIsLeft(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	// These three do not fit Java order.
	var few []uuid.UUID
	for len(few) < 3 {
		u := uuid.New()
		if v := uuidrep.JavaLegacy.Permute(uuidrep.CSharpLegacy.Permute(u)); v[8]>>6 != 0b10 {
			few = append(few, u)
		}
	}
	many := fill(t, coll, 0, 300, uuidrep.JavaLegacy, v4)
	fill(t, coll, 300, 3, uuidrep.CSharpLegacy, func(i int) uuid.UUID { return few[i] })
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""))
	r := command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitIncomplete)
	list := skipList(t, dir)
	if !strings.Contains(r.stdout, list) {
		t.Error(r.stdout)
	}
	if converted, _ := held(t, coll, many, 0, uuidrep.JavaLegacy); converted != len(many) {
		t.Errorf("%d of %d values converted", converted, len(many))
	}
	if _, same := held(t, coll, few, 300, uuidrep.CSharpLegacy); same != len(few) {
		t.Errorf("%d of %d values as they were", same, len(few))
	}
	lines := skipLines(t, list)
	if len(lines) != len(few) {
		t.Fatalf("%+v", lines)
	}
	for _, l := range lines {
		if l.Collection != s.Database()+".c" || l.Path != "a" || l.Reason == "" || !strings.Contains(string(l.Value), `"subType":"03"`) || !strings.Contains(string(l.ID), "30") {
			t.Errorf("%+v", l)
		}
	}

	// A plan of their own order converts them if a person trusts it.
	dir = prepared(t, s, "standard", convertFields("csharpLegacy", ""))
	command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...)
	if _, same := held(t, coll, few, 300, uuidrep.CSharpLegacy); same == 0 {
		t.Error("three values decided an order")
	}
	dir = prepared(t, s, "standard", convertFields("csharpLegacy", ""), trusted("a"))
	command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
	if converted, _ := held(t, coll, few, 300, uuidrep.CSharpLegacy); converted != len(few) {
		t.Errorf("%d of %d values converted", converted, len(few))
	}
}

// The decision is in the state file before the first write, and applies until the end: to the
// remaining values, which alone would lead to another decision, and to values that appear later.
func TestDecisionIsKept(t *testing.T) {
	for _, to := range []string{"standard", "csharpLegacy"} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		many := fill(t, coll, 0, 30, uuidrep.JavaLegacy, v4)
		dir := prepared(t, s, to)
		args := append([]string{"apply", dir, "--write"}, gentle...)
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() == "update" && r.documents > 1 {
				if b, err := os.ReadFile(filepath.Join(dir, "c.javaLegacy.state")); err != nil || !strings.Contains(string(b), `"basis":"evidence"`) {
					t.Errorf("%v: %s", err, b)
				}
				return r.refuse(189, "primary stepped down")
			}
			return pass()
		})
		command(t, p, args...).want(t, failure.ExitUnreachable)
		// Now most of the values are in another order, and some are in another field.
		fill(t, coll, 100, 300, uuidrep.CSharpLegacy, v4)
		later := uuid.New()
		insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(1000)}, {Key: "b", Value: in(later, uuidrep.JavaLegacy)}}})
		command(t, s, args...).want(t, failure.ExitIncomplete)
		if b := all(t, coll)[`{"$numberInt":"1000"}`].Lookup("b"); !b.Equal(marshalled(t, in(later, uuidrep.JavaLegacy))) {
			t.Errorf("a field that was not decided has become %v", b)
		}
		if to == "standard" {
			if converted, _ := held(t, coll, many, 0, uuidrep.JavaLegacy); converted != len(many) {
				t.Errorf("%d of %d values converted", converted, len(many))
			}
		}
	}
}

// If another order is proven, too, the values that fit both are left as they are.
func TestProvenMinority(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 300, uuidrep.JavaLegacy, v4)
	other := fill(t, coll, 300, 200, uuidrep.CSharpLegacy, v4)
	dirs := map[string]string{"c": prepared(t, s, "standard", convertFields("javaLegacy", "")), "c_standard": prepared(t, s, "standard", convertFields("javaLegacy", ""), intoNew("c"))}
	for _, collection := range []string{"c_standard", "c"} {
		if collection == "c" { // the plan of c does not know the copy
			drop(t, connect(t, s).Collection("c_standard"))
		}
		dir := dirs[collection]
		command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitIncomplete).prints(t, "fits csharpLegacy")
		if _, same := held(t, connect(t, s).Collection(collection), other, 300, uuidrep.CSharpLegacy); same != len(other) {
			t.Errorf("%s: %d of %d values as they were", collection, same, len(other))
		}
	}
}

// Values without evidence are converted if they are equal to ids of known order in another
// collection.
func TestEqualityIsEvidence(t *testing.T) {
	s, db := started(t)
	ids := fill(t, db.Collection("c"), 0, 40, uuidrep.JavaLegacy, checksum)
	var docs []any
	for _, u := range ids[:25] {
		docs = append(docs, bson.D{{Key: "ref", Value: in(u, uuidrep.Standard)}})
	}
	insert(t, db.Collection("known"), docs)
	apply := func(from string) result {
		return command(t, s, append([]string{"apply", prepared(t, s, "standard", convertFields(from, "")), "--write"}, gentle...)...)
	}
	apply("csharpLegacy").want(t, failure.ExitUsage)
	apply("javaLegacy").want(t, failure.ExitIncomplete)
	if converted, same := held(t, db.Collection("c"), ids, 0, uuidrep.JavaLegacy); converted != 25 || same != 15 {
		t.Errorf("%d values converted, %d as they were", converted, same)
	}
}

// Values that are left as they are in documents that appear after their place was copied are
// listed, too.
func TestLeftInLateCopies(t *testing.T) {
	s, db := started(t)
	fill(t, db.Collection("old"), 0, 20, uuidrep.JavaLegacy, v4)
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), intoNew("old"))
	var late atomic.Bool
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		reply := pass()
		if name, _ := r.command.Lookup("insert").StringValueOK(); name == "old_standard" && !late.Swap(true) {
			insert(t, db.Collection("old"), []any{bson.D{{Key: "_id", Value: int32(-1)}, {Key: "a", Value: bson.Binary{Subtype: 3, Data: make([]byte, 15)}}},
				bson.D{{Key: "_id", Value: int32(-2)}, {Key: "a", Value: bson.Binary{Subtype: 3, Data: []byte("no UUID, I think")}}}})
		}
		return reply
	})
	command(t, p, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	if lines := skipLines(t, skipList(t, dir)); len(lines) != 1 || !strings.Contains(string(lines[0].ID), "-2") {
		t.Errorf("%+v", lines)
	}
	before := all(t, db.Collection("old"))
	if got := all(t, db.Collection("old_standard")); len(got) != len(before) {
		t.Errorf("%d documents, want %d", len(got), len(before))
	}
}

// Two programs wrote in different orders. A conversion from each order leaves the values that fit
// both: the second one, too, although the values that show the first order are all converted then.
func TestBothOrdersOneAfterTheOther(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	both := func(i int) uuid.UUID { // written in Java order, it fits C# order as well
		for {
			u := v4(i)
			if w := uuidrep.CSharpLegacy.Permute(uuidrep.JavaLegacy.Permute(u)); w[6]>>4 == 4 && w[8]>>6 == 0b10 {
				return u
			}
		}
	}
	java := fill(t, coll, 0, 30, uuidrep.JavaLegacy, v4)
	csharp := fill(t, coll, 100, 30, uuidrep.CSharpLegacy, v4)
	ambiguous := fill(t, coll, 200, 3, uuidrep.JavaLegacy, both)
	apply := func(from string) result {
		return command(t, s, append([]string{"apply", prepared(t, s, "standard", convertFields(from, "")), "--write"}, gentle...)...)
	}
	apply("javaLegacy").want(t, failure.ExitIncomplete)
	apply("csharpLegacy").want(t, failure.ExitIncomplete).prints(t, "fits javaLegacy")
	if _, same := held(t, coll, ambiguous, 200, uuidrep.JavaLegacy); same != len(ambiguous) {
		t.Errorf("%d of %d values as they were", same, len(ambiguous))
	}
	for _, tt := range []struct {
		ids   []uuid.UUID
		first int
		r     uuidrep.Representation
	}{{java, 0, uuidrep.JavaLegacy}, {csharp, 100, uuidrep.CSharpLegacy}} {
		if converted, _ := held(t, coll, tt.ids, tt.first, tt.r); converted < len(tt.ids)-5 { // a few fit both
			t.Errorf("%v: %d of %d values converted", tt.r, converted, len(tt.ids))
		}
	}
}

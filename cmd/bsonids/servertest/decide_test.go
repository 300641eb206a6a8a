package servertest

import (
	"bufio"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// held counts the values of the field a that are converted from the given UUIDs, and those that are
// as they were. Any other value is an error.
func held(t testing.TB, coll *mongo.Collection, ids []uuid.UUID, first int, from uuidrep.Representation) (converted, same int) {
	t.Helper()
	docs := all(t, coll)
	for i, u := range ids {
		is := docs[marshalValue(t, int32(first+i)).String()].Lookup("a")
		switch {
		case is.Equal(marshalValue(t, in(u, uuidrep.Standard))):
			converted++
		case is.Equal(marshalValue(t, in(u, from))):
			same++
		default:
			t.Errorf("document %d: %v, which is neither converted from %s nor as it was", first+i, is, from)
		}
	}
	return converted, same
}

// wantValues fails the test unless the field a has the UUIDs in the representation, from the _id first on.
func wantValues(t testing.TB, coll *mongo.Collection, ids []uuid.UUID, first int, r uuidrep.Representation) {
	t.Helper()
	docs := all(t, coll)
	for i, u := range ids {
		if is := docs[marshalValue(t, int32(first+i)).String()].Lookup("a"); !is.Equal(marshalValue(t, in(u, r))) {
			t.Errorf("document %d: %v, want %v in %v", first+i, is, u, r)
		}
	}
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
	s, db := started(t)
	coll := db.Collection("c")
	ids := fill(t, coll, 0, 200, uuidrep.JavaLegacy, checksum)
	before := all(t, coll)
	for _, from := range []string{"javaLegacy", "csharpLegacy", "pythonLegacy"} {
		for _, way := range ways {
			dir := prepared(t, s, append(way, convertFields(from))...)
			command(t, s, "apply", dir, "--write").want(t, failure.ExitUsage).says(t, "nothing in the values tells that they are "+from)
		}
	}
	equal(t, all(t, coll), before)
	command(t, s, applying(prepared(t, s, convertFields("javaLegacy"), trusted("a")))...).want(t, failure.ExitOK)
	wantValues(t, coll, ids, 0, uuidrep.Standard)
}

// A few values in another order are left as they are and listed. They are converted from their own
// order later.
func TestMinorityIsLeft(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("c")
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
	dir := prepared(t, s, convertFields("javaLegacy"))
	r := command(t, s, applying(dir)...).want(t, failure.ExitIncomplete)
	list := skipList(t, dir)
	r.prints(t, list)
	wantValues(t, coll, many, 0, uuidrep.Standard)
	wantValues(t, coll, few, 300, uuidrep.CSharpLegacy)
	lines := skipLines(t, list)
	if len(lines) != len(few) {
		t.Fatalf("%+v", lines)
	}
	for _, l := range lines {
		if l.Collection != s.Database()+".c" || l.Path != "a" || l.Reason == "" || !strings.Contains(string(l.Value), `"subType":"03"`) || !strings.Contains(string(l.ID), "30") {
			t.Errorf("%+v", l)
		}
	}

	// A plan of their own order would convert values of which nothing tells that the first one did not: it is an error until that is undone.
	command(t, s, applying(prepared(t, s, convertFields("csharpLegacy"), trusted("a")))...).want(t, failure.ExitUsage).says(t, "undo that first", dir)
	wantValues(t, coll, few, 300, uuidrep.CSharpLegacy)
}

// The decision is in the record before the first write, and applies until the end: to the
// remaining values, which alone would lead to another decision, and to values that appear later.
func TestDecisionIsKept(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("c")
	many := fill(t, coll, 0, 30, uuidrep.JavaLegacy, v4)
	dir := prepared(t, s)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "update" && r.documents > 1 {
			if runs := recorded(t, db); len(runs) != 1 || runs[0].Decisions[0].Fields[0].Basis != decide.Evidence {
				t.Errorf("%+v", runs)
			}
			return r.refuse(189, "primary stepped down")
		}
		return pass()
	})
	command(t, p, applying(dir)...).want(t, failure.ExitUnreachable)
	// Now most of the values are in another order, and some are in another field.
	fill(t, coll, 100, 300, uuidrep.CSharpLegacy, v4)
	later := in(uuid.New(), uuidrep.JavaLegacy)
	insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(1000)}, {Key: "b", Value: later}}})
	command(t, s, applying(dir)...).want(t, failure.ExitIncomplete)
	if b := all(t, coll)[`{"$numberInt":"1000"}`].Lookup("b"); !b.Equal(marshalValue(t, later)) {
		t.Errorf("a field that was not decided has become %v", b)
	}
	wantValues(t, coll, many, 0, uuidrep.Standard)
}

// If another order is proven, too, the values that fit both are left as they are.
func TestProvenMinority(t *testing.T) {
	s, db := started(t)
	fill(t, db.Collection("c"), 0, 300, uuidrep.JavaLegacy, v4)
	other := fill(t, db.Collection("c"), 300, 200, uuidrep.CSharpLegacy, v4)
	for _, collection := range []string{"c_standard", "c"} {
		dir := prepared(t, s, convertFields("javaLegacy"), func(p *plan.Plan) {
			if collection != "c" {
				intoNew("c")(p)
			}
		})
		command(t, s, applying(dir)...).want(t, failure.ExitIncomplete).prints(t, "fits csharpLegacy")
		wantValues(t, db.Collection(collection), other, 300, uuidrep.CSharpLegacy)
		drop(t, db.Collection("c_standard")) // which the next plan does not have
	}
}

// Values without evidence are converted if they are equal to ids of known order in another
// collection.
func TestEqualityIsEvidence(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("c")
	ids := fill(t, coll, 0, 40, uuidrep.JavaLegacy, checksum)
	var docs []any
	for _, u := range ids[:25] {
		docs = append(docs, bson.D{{Key: "ref", Value: in(u, uuidrep.Standard)}})
	}
	insert(t, db.Collection("known"), docs)
	command(t, s, applying(prepared(t, s, convertFields("csharpLegacy")))...).want(t, failure.ExitUsage)
	command(t, s, applying(prepared(t, s, convertFields("javaLegacy")))...).want(t, failure.ExitIncomplete)
	wantValues(t, coll, ids[:25], 0, uuidrep.Standard)
	wantValues(t, coll, ids[25:], 25, uuidrep.JavaLegacy)
}

// Values that are left as they are in documents that appear after their place was copied are
// listed, too.
func TestLeftInLateCopies(t *testing.T) {
	s, db := started(t)
	fill(t, db.Collection("old"), 0, 20, uuidrep.JavaLegacy, v4)
	dir := prepared(t, s, convertFields("javaLegacy"), intoNew("old"))
	p := justAfter(t, s, asks("insert", "old_standard"), func() {
		insert(t, db.Collection("old"), []any{bson.D{{Key: "_id", Value: int32(-1)}, {Key: "a", Value: bson.Binary{Subtype: 3, Data: make([]byte, 15)}}},
			bson.D{{Key: "_id", Value: int32(-2)}, {Key: "a", Value: bson.Binary{Subtype: 3, Data: []byte("no UUID, I think")}}}})
	})
	command(t, p, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	if lines := skipLines(t, skipList(t, dir)); len(lines) != 1 || !strings.Contains(string(lines[0].ID), "-2") {
		t.Errorf("%+v", lines)
	}
	if got, want := len(all(t, db.Collection("old_standard"))), len(all(t, db.Collection("old"))); got != want {
		t.Errorf("%d documents, want %d", got, want)
	}
}

// Two programs wrote in different orders. A conversion from one order leaves the values that fit
// both, and one from the other order is an error until the first is undone.
func TestBothOrdersOneAfterTheOther(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("c")
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
	command(t, s, applying(prepared(t, s, convertFields("javaLegacy")))...).want(t, failure.ExitIncomplete)
	wantValues(t, coll, ambiguous, 200, uuidrep.JavaLegacy)
	if converted, _ := held(t, coll, java, 0, uuidrep.JavaLegacy); converted < len(java)-5 { // a few fit both
		t.Errorf("%d of %d values converted", converted, len(java))
	}
	command(t, s, applying(prepared(t, s, convertFields("csharpLegacy")))...).want(t, failure.ExitUsage).says(t, "undo that first")
	wantValues(t, coll, ambiguous, 200, uuidrep.JavaLegacy)
	if _, same := held(t, coll, csharp, 100, uuidrep.CSharpLegacy); same < len(csharp)-5 {
		t.Errorf("%d of %d values of the other order are as they were", same, len(csharp))
	}
}

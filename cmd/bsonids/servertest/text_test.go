package servertest

import (
	"crypto/md5"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// spelling writes a UUID in the n-th of its usual spellings.
func spelling(u uuid.UUID, n int) string {
	s := []string{u.String(), hex.EncodeToString(u[:]), "{" + u.String() + "}", u.URN()}[n%4]
	if n%8 >= 4 {
		s = strings.ToUpper(s)
	}
	return s
}

// texts inserts n documents with UUIDs in text, and returns what standard makes of them.
func texts(t *testing.T, coll *mongo.Collection, n int) map[string]bson.Raw {
	t.Helper()
	var docs []any
	want := make(map[string]bson.Raw)
	for i := range n {
		u, sku := uuid.New(), uuid.New()
		doc := func(customer, item any) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: customer}, {Key: "note", Value: u.String()},
				{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: item}}, bson.D{{Key: "n", Value: "1"}}}}}
		}
		docs = append(docs, doc(spelling(u, i), spelling(sku, i/8)))
		raw := marshal(t, doc(in(u, uuidrep.Standard), in(sku, uuidrep.Standard)))
		want[raw.Lookup("_id").String()] = raw
	}
	insert(t, coll, docs)
	return want
}

// Text is converted in the fields that a person decides about, and restored in the spelling that it had.
func TestText(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	want := texts(t, coll, 64)
	before := all(t, coll)
	dir := prepared(t, s, "standard", convertFields("text", "", "customer", "items.sku"), accepted)
	apply := append([]string{"apply", dir}, gentle...)
	r := command(t, s, apply...).want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, "text to standard") || !strings.Contains(r.stdout, "dry run") {
		t.Error(r.stdout)
	}
	equal(t, all(t, coll), before)
	r = command(t, s, append(apply, "--write", "--output", "json")...).want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, `"values": 128`) || !strings.Contains(r.stdout, `"documents": 64`) {
		t.Error(r.stdout)
	}
	equal(t, all(t, coll), want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)

	// Another program changes one of two converted values of a document.
	u := uuid.NewString()
	if _, err := coll.UpdateByID(t.Context(), int32(7), bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: u}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	if _, err := coll.UpdateByID(t.Context(), int32(7), bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: want["{\"$numberInt\":\"7\"}"].Lookup("customer")}}}}); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
		equal(t, all(t, coll), before)
	}
}

// Binary values become text in its canonical spelling.
func TestToText(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	var docs []any
	want := make(map[string]bson.Raw)
	for i := range 40 {
		u := uuid.New()
		doc := func(v any) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "list", Value: bson.A{v, "x", v}}}
		}
		docs = append(docs, doc(in(u, uuidrep.JavaLegacy)))
		raw := marshal(t, doc(u.String()))
		want[raw.Lookup("_id").String()] = raw
	}
	insert(t, coll, docs)
	before := all(t, coll)
	dir := prepared(t, s, "standard", convertFields("javaLegacy", "text"))
	r := command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, "javaLegacy to text") {
		t.Error(r.stdout)
	}
	equal(t, all(t, coll), want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
}

// What is not a UUID, or may be a checksum, is left and listed. Empty strings are left and not listed. What is
// left is converted later if the field is trusted, except for what is no UUID.
func TestTextLeft(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	var docs []any
	odd := "12345678-0000-0000-0000-000000000001" // without variant and version
	for i := range 40 {
		v := uuid.NewString()
		switch i {
		case 3:
			v = "unknown"
		case 4:
			v = odd
		case 5:
			v = ""
		case 6:
			v = uuid.Nil.String()
		}
		sum := md5.Sum([]byte(v))
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: v}, {Key: "sum", Value: hex.EncodeToString(sum[:])},
			{Key: "digits", Value: spelling(uuid.New(), 1)}, {Key: "other", Value: nil}})
	}
	insert(t, coll, docs)
	dir := prepared(t, s, "standard", convertFields("text", "", "id", "digits"))
	r := command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	if b := text(t, skipList(t, dir)); strings.Count(b, "\n") != 2 || !strings.Contains(r.stdout, "does not have the variant and a version of RFC 9562") || !strings.Contains(b, `"value":"unknown"`) || !strings.Contains(b, odd) {
		t.Error(b)
	}
	converted := 0
	for _, doc := range all(t, coll) {
		for _, field := range []string{"id", "sum", "digits"} {
			if subtype, _, ok := doc.Lookup(field).BinaryOK(); ok && subtype == 4 {
				converted++
			}
		}
	}
	if converted != 80-3 {
		t.Errorf("%d values are converted", converted)
	}
	changePlan(t, dir, trusted("id"))
	command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete) // the words are left
	if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "sum", Value: bson.D{{Key: "$type", Value: "string"}}}}); err != nil || n != 40 {
		t.Errorf("%d checksums are left, %v", n, err)
	}
	if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: int32(4)}, {Key: "id", Value: in(uuid.MustParse(odd), uuidrep.Standard)}}).Err(); err != nil {
		t.Error(err)
	}
	if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: int32(3)}, {Key: "id", Value: "unknown"}}).Err(); err != nil {
		t.Error(err)
	}
	dir = prepared(t, s, "standard", convertFields("text", "", "sum"), trusted("sum"))
	command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "sum", Value: bson.D{{Key: "$type", Value: "binData"}}}}); err != nil || n != 40 {
		t.Errorf("%d checksums are converted, %v", n, err)
	}
}

// Text in _id is converted into a new collection. Two spellings of one UUID become one _id, which is a
// conflict: nothing is verified.
func TestTextInID(t *testing.T) {
	for name, tt := range map[string]struct {
		second  any // in a document with another spelling of an _id; nil for no such document
		finding string
	}{
		"no conflict":     {nil, ""},
		"other values":    {"b", "two documents have the same _id"},
		"the same values": {"a", "two documents have the same _id"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mongotest.Start(t)
			db := connect(t, s)
			want := make(map[string]bson.Raw)
			var docs []any
			for i := range 30 {
				u := uuid.New()
				docs = append(docs, bson.D{{Key: "_id", Value: spelling(u, i)}, {Key: "v", Value: "a"}})
				raw := marshal(t, bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, {Key: "v", Value: "a"}})
				want[raw.Lookup("_id").String()] = raw
				if i == 0 && tt.second != nil {
					docs = append(docs, bson.D{{Key: "_id", Value: spelling(u, 4)}, {Key: "v", Value: tt.second}})
				}
			}
			insert(t, db.Collection("c"), docs)
			before := all(t, db.Collection("c"))
			code := failure.ExitOK
			if tt.finding != "" {
				code = failure.ExitIncomplete
			}
			dir := prepared(t, s, "standard", convertFields("text", "", "_id"), intoNew("c"))
			r := command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, code)
			proof := command(t, s, "verify", dir).want(t, code)
			if !strings.Contains(r.stdout, tt.finding) || !strings.Contains(proof.stdout, tt.finding) {
				t.Errorf("%s\n%s", r.stdout, proof.stdout)
			}
			equal(t, all(t, db.Collection("c")), before)
			if tt.finding == "" {
				equal(t, all(t, db.Collection("c_standard")), want)
			}
		})
	}
}

// A reference that is not converted is named before anything is written.
func TestTextReferences(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	var users, orders []any
	for i := range 30 {
		u := uuid.New()
		users = append(users, bson.D{{Key: "_id", Value: int32(i)}, {Key: "key", Value: u.String()}})
		orders = append(orders, bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: spelling(u, i)}, {Key: "other", Value: uuid.NewString()}})
	}
	insert(t, db.Collection("users"), users)
	insert(t, db.Collection("orders"), orders)
	dir := prepared(t, s, "standard", convertFields("text", "", "key"))
	r := command(t, s, "apply", dir).want(t, failure.ExitUsage)
	if want := `"orders" "user" (text, leave) and "users" "key" (text, convert from text) would be half converted`; !strings.Contains(r.stderr, want) {
		t.Errorf("%q is not in\n%s", want, r.stderr)
	}
	if strings.Contains(r.stderr, `"other"`) {
		t.Error(r.stderr)
	}
}

// A process is killed after the server changed a document and before the state file is updated.
// Before the same command is run again, another program writes another text. undo restores all
// texts that were converted, in their spellings.
func TestTextAfterKill(t *testing.T) {
	for _, writes := range []string{"a", "b"} {
		t.Run(writes, func(t *testing.T) {
			coll := collection(t)
			c := conversion(t, "generic", "standard", "a", "b", "z")
			var err error
			if c.From, err = kinds.Parse("text"); err != nil {
				t.Fatal(err)
			}
			doc := bson.D{{Key: "_id", Value: int32(1)}, {Key: "a", Value: spelling(uuid.New(), 5)}, {Key: "z", Value: spelling(uuid.New(), 6)}}
			insert(t, coll, []any{doc})
			f := newFiles(t, c)
			run := func(s *convert.StateFile, u *convert.UndoLog) {
				t.Helper()
				res, err := convert.InPlace(t.Context(), coll, convert.Options{Conversion: c, Write: true, Workers: 1, State: s, Undo: u})
				if err != nil || res.Skipped > 0 {
					t.Fatalf("%+v, %v", res, err)
				}
			}
			f.with(t, func(s *convert.StateFile, u *convert.UndoLog) {
				begun := convert.State{Identity: s.Identity, UndoID: u.ID, UndoOffset: u.Size()}
				run(s, u)
				s.State = begun
				if err := s.Save(); err != nil {
					t.Fatal(err)
				}
			})
			other := spelling(uuid.New(), 7)
			if _, err := coll.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: writes, Value: other}}}}); err != nil {
				t.Fatal(err)
			}
			f.with(t, run)
			if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "a", Value: bson.D{{Key: "$type", Value: "string"}}}}, bson.D{{Key: "z", Value: bson.D{{Key: "$type", Value: "string"}}}}}}}); err != nil || n > 0 {
				t.Errorf("%d documents have text, %v", n, err)
			}
			u, err := convert.ReadUndoLog(f.undo)
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			if res, err := convert.Undo(t.Context(), coll, u, convert.UndoOptions{Write: true, Batch: 10}); err != nil || len(res.Skips) > 0 {
				t.Fatalf("%+v, %v", res, err)
			}
			if writes == "a" {
				doc[1].Value = other
			} else {
				doc = append(doc, bson.E{Key: "b", Value: other})
			}
			want := marshal(t, doc)
			equal(t, all(t, coll), map[string]bson.Raw{want.Lookup("_id").String(): want})
		})
	}
}

// Of two spellings of one UUID in a field with a unique index, the second is left and listed.
func TestTextUnique(t *testing.T) {
	s := mongotest.Start(t)
	s.Require(t, mongotest.UniqueUpdates)
	db := connect(t, s)
	coll := db.Collection("c")
	if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "v", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		t.Fatal(err)
	}
	u := uuid.New()
	insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "v", Value: spelling(u, 0)}}, bson.D{{Key: "_id", Value: int32(2)}, {Key: "v", Value: spelling(u, 4)}}})
	dir := prepared(t, s, "standard", convertFields("text", ""))
	r := command(t, s, "apply", dir, "--write", "--output", "json").want(t, failure.ExitIncomplete)
	if b := text(t, skipList(t, dir)); !strings.Contains(r.stdout, `"documents": 1`) || strings.Count(b, "\n") != 1 {
		t.Errorf("%s%s", r.stdout, b)
	}
}

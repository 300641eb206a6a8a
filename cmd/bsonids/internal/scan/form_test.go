package scan

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// The evidence for text and for documents of Go structs counts how they are written, the versions, and
// the ids that other fields have in whatever form.
func TestForms(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	s := newScan(t)
	users, visits := s.collector(t, "users"), s.collector(t, "visits")
	for i := range 40 {
		u := uuid.UUID(v4(r, i))
		text := []string{u.String(), u.URN(), "{" + u.String() + "}", hex.EncodeToString(u[:])}[i%4]
		doc := bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}
		if i%4 > 0 {
			doc = append(doc, bson.E{Key: "valid", Value: true})
		}
		other := any(bson.Binary{Subtype: 4, Data: u[:]})
		if i >= 20 {
			other = uuid.New().String()
		}
		collect(t, users, bson.D{{Key: "_id", Value: other}})
		collect(t, visits, bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: text}, {Key: "by", Value: doc}})
	}
	collect(t, visits, bson.D{{Key: "_id", Value: 1}, {Key: "user", Value: uuid.Nil.String()},
		{Key: "by", Value: bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}}})
	collect(t, visits, bson.D{{Key: "_id", Value: 2}, {Key: "user", Value: "d41d8cd98f00b204e9800998ecf8427"}})
	fields := s.judged(t)[1].Fields
	form := func(path string) FormEvidence {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Path == path })
		if i < 0 || len(fields[i].Forms) != 1 {
			t.Fatalf("%s: %+v", path, fields)
		}
		return fields[i].Forms[0]
	}
	want := FormEvidence{Form: "text", Distinct: 41, Uninformative: 1, Fits: 40, Versions: [9]int64{4: 40},
		Written: Written{"hyphens": 11, "urn": 10, "braces": 10, "digits": 10}, Matches: 20, MatchedIn: "db.users _id",
		Reasons: []string{"11 with hyphens, 10 in braces, 10 after urn:uuid:, 10 with 32 digits and no hyphens",
			"40 of 40 distinct UUIDs have the variant and a version of RFC 9562: 4", "1 have no version, such as the nil UUID", "20 equal ids of known order, most of them in db.users _id"}}
	if got := form("user"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Form, want.Written, want.Reasons = "goStruct", Written{"uuid": 10, "valid": 30, "null": 1}, slices.Clone(want.Reasons)
	want.Reasons[0] = "10 {uuid: …}, 30 {uuid: …, valid: true}, 1 {uuid: …, valid: false}, which is no UUID"
	// The text with 32 digits has no known order.
	want.Matches, want.MatchedIn, want.Reasons[3] = 35, "db.visits user", "35 equal ids of known order, most of them in db.visits user"
	if got := form("by"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// Text of 32 digits counts as UUIDs if its values have the variant and a version. Checksums do not.
func TestDigits(t *testing.T) {
	for name, tt := range map[string]struct {
		value maker
		text  int64
	}{"version 4": {v4, 100}, "version 7": {v7, 100}, "checksums": {md5Sum, 0}, "random": {noBits, 0}} {
		s, r := newScan(t), rand.New(rand.NewPCG(1, 3))
		gather(t, s.collector(t, "c"), "id", 100, func(i int) any { return fmt.Sprintf("%x", tt.value(r, i)) })
		fields := s.judged(t)[0].Fields
		if tt.text == 0 && len(fields) != 0 || tt.text > 0 && (len(fields) != 1 || fields[0].Counts != Counts{Text: tt.text}) {
			t.Errorf("%s: %+v", name, fields)
		}
	}
}

// Text in binary values counts by how it is written. 32 digits of a subtype of UUIDs are UUIDs; of another one they are only if the
// values have the variant and a version, as in strings.
func TestBinaryText(t *testing.T) {
	for name, tt := range map[string]struct {
		subtype byte
		format  string
		value   maker
		want    Counts
		written Written
	}{
		"Doctrine":              {3, "%x-%x-%x-%x-%x", v4, Counts{BinaryText: 100}, Written{"hyphens": 100}},
		"a Buffer of Mongoose":  {0, "%x-%x-%x-%x-%x", v4, Counts{BinaryText: 100}, Written{"hyphens": 100}},
		"of no version":         {4, "%x-%x-%x-%x-%x", noBits, Counts{BinaryText: 100}, Written{"hyphens": 100}},
		"old Spring":            {3, "%x%x%x%x%x", v4, Counts{BinaryText: 100}, Written{"uuidDigits": 100}},
		"subtype 2":             {2, "%X%X%X%X%X", v4, Counts{BinaryText: 100}, Written{"digits": 100}},
		"checksums":             {0, "%x%x%x%x%x", md5Sum, Counts{}, nil},
		"checksums, subtype 4":  {4, "%x%x%x%x%x", md5Sum, Counts{BinaryText: 100}, Written{"uuidDigits": 100}},
		"other text, subtype 3": {3, "%x-%x-%x-%x_%x", v4, Counts{Malformed: 100}, nil},
		"other text, subtype 0": {0, "%x-%x-%x-%x_%x", v4, Counts{}, nil},
	} {
		s, r := newScan(t), rand.New(rand.NewPCG(1, 3))
		gather(t, s.collector(t, "c"), "id", 100, func(i int) any {
			u := tt.value(r, i)
			return bson.Binary{Subtype: tt.subtype, Data: fmt.Appendf(nil, tt.format, u[:4], u[4:6], u[6:8], u[8:10], u[10:])}
		})
		fields := s.judged(t)[0].Fields
		switch {
		case tt.want == Counts{}:
			if len(fields) > 0 {
				t.Errorf("%s: %+v", name, fields)
			}
		case len(fields) != 1 || fields[0].Counts != tt.want:
			t.Errorf("%s: %+v", name, fields)
		case tt.written != nil && (len(fields[0].Forms) != 1 || fields[0].Forms[0].Form != "binaryText" || !reflect.DeepEqual(fields[0].Forms[0].Written, tt.written)):
			t.Errorf("%s: %+v", name, fields[0].Forms)
		}
	}
}

package plan

import (
	"crypto/md5"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Text and documents of Go structs are converted in the same step, and are written to the file as they are.
func TestFormSteps(t *testing.T) {
	p := planOf(t, "collections: [{name: x, fields: [a $java, d $text, e $struct, f $binaryText]}]")
	again, err := Parse(p.Text())
	if err != nil || !reflect.DeepEqual(bare(again).Collections, bare(p).Collections) || len(p.Check()) > 0 {
		t.Fatalf("%v: got %+v", err, again)
	}
	var got []string
	steps := again.Steps()
	for _, p := range steps[0].Pairs {
		got = append(got, fmt.Sprint(p.From, " ", p.Fields))
	}
	want := []string{"binaryText [f]", "goStruct [e]", "javaLegacy [a]", "text [d]"}
	if !reflect.DeepEqual(got, want) || len(steps) != 1 {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Malformed values are a pair of their own, which converts nothing: what is malformed in _id needs no copy. A person who leaves
// them after the conversion edits nothing that was converted.
func TestMalformedSteps(t *testing.T) {
	p := planOf(t, "collections: [{name: x, fields: [_id $malformed, a $java, a $malformed]}, {name: y, fields: [b $malformed]}, {name: z, fields: [b $okMalformed]}]")
	var got []string
	steps := p.Steps()
	for _, s := range steps {
		got = append(got, fmt.Sprint(s.Collection, " ", s.Pairs, " ", FieldsOf(s.Pairs)))
	}
	want := []string{"x [from javaLegacy to standard from malformed to standard] [a]", "y [from malformed to standard] []"}
	if !reflect.DeepEqual(got, want) || len(p.Check()) > 0 || steps[0].Pairs[1].Fields[0] != "_id" {
		t.Errorf("got %q, want %q, %q", got, want, p.Check())
	}
	b := &builder{survey: &survey.Survey{}}
	if b.copies(p); p.Collections[0].Into != "" {
		t.Errorf("%+v", p.Collections[0])
	}
	left := planOf(t, "collections: [{name: x, fields: [_id $okMalformed, a $java, a $okMalformed]}, {name: y, fields: [b $okMalformed]}, {name: z, fields: [b $okMalformed]}]")
	if edits := left.Frozen([]kinds.Task{{Collection: "x", Pairs: steps[0].Pairs}}); len(edits) > 0 {
		t.Errorf("%q", edits)
	}
	if field, _, _ := steps[0].Clash(kinds.Task{Collection: "x", Pairs: steps[0].Pairs}); field != "" {
		t.Error(field)
	}
}

// Malformed values that appeared since the plan was made are not in it, and a person has to know of them.
func TestMalformedAppears(t *testing.T) {
	was, is := planOf(t, "collections: [{name: x, fields: [a $java]}]"), planOf(t, "collections: [{name: x, fields: [a $java, a $malformed]}]")
	c := comparison{plan: was}
	if c.collection(was.Collections[0], is.Collections[0]); len(c.problems) != 1 || !strings.Contains(c.problems[0], `the field "a" (malformed) is not in the plan`) {
		t.Errorf("%q", c.problems)
	}
}

// A plan warns of subtype 0 in _id alone, also in a field of _id, whatever the decision is.
func TestWarnOfGenericID(t *testing.T) {
	b := &builder{}
	for f, want := range map[[2]string]bool{{"_id", "subtype 0"}: true, {"_id.tenant", "subtype 0"}: true, {"_ids", "subtype 0"}: false,
		{"a._id", "subtype 0"}: false, {"_id", "subtype 3"}: false, {"_id", "subtype 4"}: false} {
		of := Field{Path: f[0], Stored: kinds.Stored(f[1])}
		b.field(&of, survey.Collection{})
		if got := strings.Contains(strings.Join(of.Comment, "\n"), "_id of subtype 0"); got != want {
			t.Errorf("%s: %q", f, of.Comment)
		}
	}
}

// Text of 32 digits that shows nothing is in the plan, so that a person can say that it is UUIDs.
func TestDigitsWithoutEvidence(t *testing.T) {
	of := scan.New(t.TempDir(), time.Unix(1e9, 0), true)
	defer of.Close()
	c, err := of.Collection("d", "files")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		doc, err := bson.Marshal(bson.D{{Key: "md5", Value: fmt.Sprintf("%x", md5.Sum(fmt.Append(nil, i)))}, {Key: "name", Value: fmt.Sprint(i)}})
		if err := errors.Join(err, c.Add(doc)); err != nil {
			t.Fatal(err)
		}
	}
	s := &survey.Survey{Database: "d", Collections: []survey.Collection{{Name: "files", Documents: 40}}}
	if err := s.Decide(of); err != nil {
		t.Fatal(err)
	}
	p := Build(s, nil)
	if len(p.Collections) != 1 || len(p.Collections[0].Fields) != 1 {
		t.Fatalf("%+v", p.Collections)
	}
	f := &p.Collections[0].Fields[0]
	text := strings.Join(f.Comment, "\n")
	if f.Path != "md5" || f.Stored != kinds.OfText || f.Decision != Leave || len(p.Check()) > 0 ||
		!strings.Contains(text, "left: 32 digits without hyphens may be a checksum") || !strings.Contains(text, "convert from text with trust: true makes them standard") {
		t.Errorf("%+v, %s, %v", f, text, p.Check())
	}
	f.Decision = Convert(kinds.OfText)
	if got := p.Check(); !strings.Contains(fmt.Sprint(got), "add trust: true") {
		t.Error(got)
	}
	if f.Trust = true; len(p.Check()) > 0 {
		t.Error(p.Check())
	}
}

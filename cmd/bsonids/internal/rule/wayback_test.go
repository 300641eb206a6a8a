package rule

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Each value is restored for itself: a value that another program changed does not keep the others
// of its document converted.
func TestWayBackByValue(t *testing.T) {
	c := conversion(t, "javaLegacy")
	old, fresh, other := kindstest.Value("javaLegacy"), kindstest.Value("standard"), bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}
	p, err := c.Edits(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: old}, {Key: "b", Value: bson.A{old, "x"}}, {Key: "c", Value: bson.D{{Key: "d", Value: old}}}}))
	if err != nil || len(p.Changes) != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, tt := range []struct {
		a, b, d    any
		back, lost []string
	}{
		{fresh, fresh, fresh, []string{"a", "b.0", "c.d"}, nil},
		{other, fresh, fresh, []string{"b.0", "c.d"}, []string{"a"}},
		{other, "y", fresh, []string{"c.d"}, []string{"a", "b.0"}},
		{other, "y", nil, nil, []string{"a", "b.0", "c.d"}},
		{old, other, fresh, []string{"c.d"}, []string{"b.0"}},
		{fresh, old, other, []string{"a"}, []string{"c.d"}},
	} {
		doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: tt.a}, {Key: "b", Value: bson.A{tt.b, "x"}}, {Key: "c", Value: bson.D{{Key: "d", Value: tt.d}}}})
		back, lost, err := WayBack(doc, p.Changes)
		if err != nil || !slices.Equal(pathsOf(back), tt.back) || !slices.Equal(pathsOf(lost), tt.lost) {
			t.Errorf("%v: %v, lost %v, %v; want %v, lost %v", doc, pathsOf(back), pathsOf(lost), err, tt.back, tt.lost)
		}
	}
}

func pathsOf(changes []Change) (paths []string) {
	for _, ch := range changes {
		paths = append(paths, ch.Path)
	}
	slices.Sort(paths)
	return paths
}

// Values that another program moved within their array are restored where they are, but null, which a document of a Go struct became,
// only at its own path: elsewhere, it may be the null of another program. A damaged document is an error.
func TestWayBackMoved(t *testing.T) {
	one, two := bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}, bson.Binary{Subtype: 3, Data: []byte("fedcba9876543210")}
	nobody := bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}
	somebody := bson.D{{Key: "uuid", Value: bson.Binary{Data: []byte("0123456789abcdef")}}, {Key: "valid", Value: true}}
	in := func(v any) bson.D { return bson.D{{Key: "x", Value: v}} }
	for _, tt := range []struct {
		from string
		list bson.A
		move func(bson.A) bson.A // of the converted ones
		want []string
		lost []string
	}{
		{"javaLegacy", bson.A{in(one), in(two)}, func(l bson.A) bson.A { return bson.A{1, l[1], l[0]} }, []string{"l.1.x", "l.2.x"}, nil},
		{"javaLegacy", bson.A{in(one), in(two)}, func(l bson.A) bson.A { return bson.A{in(in(1)), l[0], l[1]} }, []string{"l.1.x", "l.2.x"}, nil},
		{"goStruct", bson.A{nobody, 7}, func(bson.A) bson.A { return bson.A{7, nil} }, nil, []string{"l.0"}},
		{"goStruct", bson.A{nobody, somebody}, func(l bson.A) bson.A { return bson.A{l[1], nil} }, []string{"l.0"}, []string{"l.0"}},
		{"goStruct", bson.A{nobody, 7, nobody}, func(bson.A) bson.A { return bson.A{7, nil, nil} }, []string{"l.2"}, []string{"l.0"}},
	} {
		c := conversion(t, tt.from, "l", "l.x")
		before := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: tt.list}})
		p, err := c.Edits(before)
		if err != nil {
			t.Fatal(err)
		}
		after, _, _, err := c.Rewrite(before)
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ L bson.A }
		if err := bson.Unmarshal(after, &d); err != nil {
			t.Fatal(err)
		}
		doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: tt.move(d.L)}})
		back, lost, err := WayBack(doc, p.Changes)
		if err != nil || !slices.Equal(pathsOf(lost), tt.lost) || !slices.Equal(pathsOf(back), tt.want) {
			t.Errorf("%v: %v, lost %v, %v", doc, pathsOf(back), pathsOf(lost), err)
		}
		for _, ch := range back {
			if !slices.ContainsFunc(p.Changes, func(was Change) bool { return was.New == ch.Old && was.Old == ch.New }) {
				t.Errorf("%v: %+v", doc, ch)
			}
		}
		if _, _, err := WayBack(doc[:len(doc)-3], p.Changes); tt.from == "javaLegacy" && !errors.Is(err, walk.ErrCorrupt) {
			t.Errorf("damaged: %v", err)
		}
	}
}

// A place that an update cannot address is none to which a value was moved.
func TestWayBackOddNames(t *testing.T) {
	c := conversion(t, "javaLegacy")
	old, fresh := kindstest.Value("javaLegacy"), kindstest.Value("standard")
	p, err := c.Edits(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{old}}}))
	if err != nil || len(p.Changes) != 1 {
		t.Fatal(p, err)
	}
	moved := bson.E{Key: "l", Value: bson.A{"x", fresh}}
	for _, tt := range []struct {
		doc        bson.D
		back, lost []string
	}{
		{bson.D{moved}, []string{"l.1"}, nil},
		{bson.D{moved, {Key: "l.5", Value: fresh}}, []string{"l.1"}, nil},
		{bson.D{moved, {Key: "l", Value: bson.A{"x"}}}, nil, []string{"l.0"}},
		{bson.D{{Key: "l", Value: bson.A{"x"}}, {Key: "l.5", Value: fresh}}, nil, []string{"l.0"}},
		{bson.D{{Key: "l", Value: bson.A{"x", fresh, fresh}}}, nil, []string{"l.0"}},
		{bson.D{{Key: "l", Value: bson.A{"x", old}}}, nil, nil},
		{bson.D{{Key: "other", Value: bson.A{"x", fresh}}}, nil, []string{"l.0"}},
	} {
		back, lost, err := WayBack(marshal(t, tt.doc), p.Changes)
		if err != nil || !slices.Equal(pathsOf(back), tt.back) || !slices.Equal(pathsOf(lost), tt.lost) {
			t.Errorf("%v: %v, lost %v, %v; want %v, lost %v", tt.doc, pathsOf(back), pathsOf(lost), err, tt.back, tt.lost)
		}
	}
}

// Of equal old values only the one that is missing is lost. If old values differ that became one, then all of them in the field are
// lost, because the one at its path may have been another; those of other fields are not.
func TestWayBackOfEqualValues(t *testing.T) {
	const text = "00112233-4455-6677-8899-aabbccddeeff"
	for _, tt := range []struct {
		l, m       any
		back, lost []string
	}{
		{bson.A{text, text}, text, []string{"l.0", "m"}, []string{"l.1"}},
		{bson.A{text, strings.ToUpper(text)}, text, []string{"m"}, []string{"l.0", "l.1"}},
	} {
		c := conversion(t, "text", "l", "m")
		p, err := c.Edits(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: tt.l}, {Key: "m", Value: tt.m}}))
		if err != nil || len(p.Changes) != 3 {
			t.Fatalf("%+v, %v", p, err)
		}
		fresh := kindstest.Value("standard")
		doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{fresh, "other"}}, {Key: "m", Value: fresh}})
		back, lost, err := WayBack(doc, p.Changes)
		if err != nil || !slices.Equal(pathsOf(back), tt.back) || !slices.Equal(pathsOf(lost), tt.lost) {
			t.Errorf("%v: %v, lost %v, %v; want %v, lost %v", tt.l, pathsOf(back), pathsOf(lost), err, tt.back, tt.lost)
		}
	}
}

// A value that was moved to the place of one that may have been another is restored there.
func TestWayBackOfMovedAmongEqual(t *testing.T) {
	const text, other = "00112233-4455-6677-8899-aabbccddeeff", "00000000-1111-4222-8333-444444444444"
	c := conversion(t, "text", "l")
	p, err := c.Edits(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{text, strings.ToUpper(text), other}}}))
	if err != nil || len(p.Changes) != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	u := uuid.MustParse(other)
	doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{kindstest.Value("standard"), bson.Binary{Subtype: 4, Data: u[:]}}}})
	for range 50 { // in any order of the values
		back, lost, err := WayBack(doc, p.Changes)
		if err != nil || !slices.Equal(pathsOf(back), []string{"l.1"}) || !slices.Equal(pathsOf(lost), []string{"l.0", "l.1"}) {
			t.Fatalf("%v, lost %v, %v", pathsOf(back), pathsOf(lost), err)
		}
	}
}

// Positions in arrays are numbers below 2³¹.
func TestWithoutPositions(t *testing.T) {
	for path, want := range map[string]string{"a": "a", "l.0.x.17": "l.[].x.[]", "l.2147483647": "l.[]", "l.2147483648": "l.2147483648", "l.-1": "l.-1", "l.1a": "l.1a"} {
		if got := withoutPositions(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

package built_test

import (
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/structcodec"
)

// TestOf tests that a registry has the Note that was added last, whether or not it was asked for one before, and among more
// registries than are remembered.
func TestOf(t *testing.T) {
	var notes []*built.Note
	var regs []*bson.Registry
	for i := range 12 {
		reg, n := bson.NewRegistry(), &built.Note{OwnFilters: i%2 == 0}
		if i%3 == 0 && built.Of(reg) != nil {
			t.Error("a registry of the driver has a note")
		}
		n.AddTo(reg)
		notes, regs = append(notes, n), append(regs, reg)
	}
	for range 2 {
		for i, reg := range regs {
			if built.Of(reg) != notes[i] {
				t.Errorf("%d: got %p, want %p", i, built.Of(reg), notes[i])
			}
		}
	}
	again := new(built.Note)
	again.AddTo(regs[0])
	if built.Of(regs[0]) != again {
		t.Error("the note that was replaced is found")
	}
}

// TestPlansOf tests that the plans of a registry are found as its Note is, and those that a registry gets while it is built
// also if it was asked for them before.
func TestPlansOf(t *testing.T) {
	reg := bson.NewRegistry()
	n := &built.Note{Stage: built.Building}
	if built.PlansOf(reg) != nil {
		t.Error("a registry of the driver has plans")
	}
	n.AddTo(reg)
	for range 2 {
		if built.Of(reg) != n || built.PlansOf(reg) != nil {
			t.Error("a registry that is being built has no note, or plans")
		}
	}
	n.Plans, n.Stage = new(structcodec.Codec), built.Done
	for range 2 {
		if built.Of(reg) != n || built.PlansOf(reg) != n.Plans {
			t.Error("the plans that came last are not found")
		}
	}
}

type method struct{}

func (method) MarshalBSON() ([]byte, error)            { return []byte("document"), nil }
func (method) MarshalBSONValue() (byte, []byte, error) { return 1, []byte("value"), nil }
func (r rules) MarshalDocument(bson.EncodeContext, bson.Marshaler) ([]byte, error) {
	return []byte(r), nil
}

func (r rules) MarshalValue(bson.EncodeContext, bson.ValueMarshaler) (byte, []byte, error) {
	return 2, []byte(r), nil
}

type rules string

// TestMarshal tests that the rules of a registry decide about methods, and the methods alone if there are none.
func TestMarshal(t *testing.T) {
	ruled, noted := bson.NewRegistry(), bson.NewRegistry()
	(&built.Note{Rules: rules("ruled")}).AddTo(ruled)
	new(built.Note).AddTo(noted)
	for _, tt := range []struct {
		reg             *bson.Registry
		document, value string
		typ             byte
	}{{nil, "document", "value", 1}, {bson.NewRegistry(), "document", "value", 1}, {noted, "document", "value", 1}, {ruled, "ruled", "ruled", 2}} {
		ec := bson.EncodeContext{Registry: tt.reg}
		if doc, err := built.MarshalDocument(ec, method{}); err != nil || string(doc) != tt.document {
			t.Errorf("got %s, %v, want %s", doc, err, tt.document)
		}
		if typ, value, err := built.MarshalValue(ec, method{}); err != nil || string(value) != tt.value || typ != tt.typ {
			t.Errorf("got %d %s, %v, want %d %s", typ, value, err, tt.typ, tt.value)
		}
	}
}

// A note has no values to encode.
func TestEncodeValue(t *testing.T) {
	if err := new(built.Note).EncodeValue(bson.EncodeContext{}, nil, reflect.ValueOf(built.Note{})); err == nil {
		t.Error("a note is encoded")
	}
}

package structcodec

import (
	"bytes"
	"encoding/binary"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// oneOfEach returns documents with values of every BSON type, small ones and empty ones.
func oneOfEach(t *testing.T) (docs []bson.Raw) {
	t.Helper()
	for _, v := range []any{
		1.5, "", "text", bson.D{}, bson.D{{Key: "k", Value: "v"}}, bson.A{}, bson.A{int32(1), "x"}, bson.Binary{}, bson.Binary{Subtype: 2, Data: []byte{1, 2}}, bson.Binary{Subtype: 2},
		bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.Undefined{}, bson.ObjectID{1}, true, bson.DateTime(1), nil, bson.Regex{}, bson.Regex{Pattern: "p", Options: "i"},
		bson.DBPointer{DB: "d", Pointer: bson.ObjectID{1}}, bson.JavaScript("j"), bson.Symbol("s"), bson.CodeWithScope{Code: "c", Scope: bson.D{}},
		bson.CodeWithScope{Scope: bson.D{{Key: "k", Value: true}}}, int32(1), bson.Timestamp{T: 1}, int64(1), bson.Decimal128{}, bson.MinKey{}, bson.MaxKey{},
	} {
		for _, key := range []string{"", "a", "key", "a key of 13 c", "a key of 14 ch", "a key of 15 cha", "a key of 16 char", "a key of 17 chars", "a longer key of many characters"} {
			for _, d := range []bson.D{{{Key: key, Value: v}}, {{Key: key, Value: v}, {Key: "z", Value: "behind"}}} {
				doc, err := bson.Marshal(d)
				if err != nil {
					t.Fatal(err)
				}
				docs = append(docs, doc)
			}
		}
	}
	return docs
}

// A grammar reads BSON by the grammar of bsonspec.org. What follows a mistake is not read.
type grammar struct {
	rest   []byte
	bad    bool
	within bool // a document or an array, which countElements does not look into
}

func (g *grammar) bytes(n int) []byte {
	if n < 0 || n > len(g.rest) {
		g.bad, g.rest = true, nil
		return make([]byte, 4)
	}
	b := g.rest[:n]
	g.rest = g.rest[n:]
	return b
}

func (g *grammar) int32() int { return int(int32(binary.LittleEndian.Uint32(g.bytes(4)))) }

func (g *grammar) cstring() {
	for !g.bad && g.bytes(1)[0] != 0 {
	}
}

func (g *grammar) string() {
	if n := g.int32(); n < 1 {
		g.bad = true
	} else if b := g.bytes(n); !g.bad && b[n-1] != 0 {
		g.bad = true
	}
}

// document reads a document. What a length says that it holds must be all of it.
func (g *grammar) document() {
	whole := g.rest
	n := g.int32()
	if n < 5 || n > len(whole) {
		g.bad = true
		return
	}
	inner := &grammar{rest: whole[4:n]}
	for !inner.bad {
		t := bson.Type(inner.bytes(1)[0])
		if t == 0 {
			break
		}
		inner.cstring()
		inner.value(t)
	}
	g.bad, g.within = g.bad || inner.bad || len(inner.rest) > 0, inner.within
	g.rest = whole[n:]
}

func (g *grammar) value(t bson.Type) {
	switch t {
	case bson.TypeDouble, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt64:
		g.bytes(8)
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		g.string()
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		g.document()
		g.within = true
	case bson.TypeBinary:
		n := g.int32()
		subtype := g.bytes(1)[0]
		octets := &grammar{rest: g.bytes(n)}
		// The driver reads an old binary value that has no room for its second length as it is.
		if subtype == bson.TypeBinaryBinaryOld && n > 4 && octets.int32() != n-4 {
			g.bad = true
		}
	case bson.TypeObjectID:
		g.bytes(12)
	case bson.TypeBoolean: // the driver refuses other booleans when it reads them
		g.bytes(1)
	case bson.TypeRegex:
		g.cstring()
		g.cstring()
	case bson.TypeDBPointer:
		g.string()
		g.bytes(12)
	case bson.TypeCodeWithScope:
		whole := g.rest
		if n := g.int32(); n < 4 || n > len(whole) {
			g.bad = true
		} else {
			inner := &grammar{rest: whole[4:n]}
			inner.string()
			inner.document()
			g.bad = g.bad || inner.bad || len(inner.rest) > 0
			g.rest = whole[n:]
		}
	case bson.TypeInt32:
		g.bytes(4)
	case bson.TypeDecimal128:
		g.bytes(16)
	case bson.TypeUndefined, bson.TypeNull, bson.TypeMinKey, bson.TypeMaxKey:
	default:
		g.bad = true
	}
}

// A document is valid if the grammar says so. Damaged in one byte, or at its end, most documents are not.
func TestValidDocument(t *testing.T) {
	valid, damaged := 0, 0
	check := func(doc []byte) {
		t.Helper()
		g := &grammar{rest: doc}
		g.document()
		want := !g.bad && len(g.rest) == 0
		if got := validDocument(doc, 0); got != want {
			t.Errorf("%x: got %v, the grammar says %v", doc, got, want)
		}
		if len(doc) >= 5 && int32At(doc) == len(doc) && doc[len(doc)-1] == 0 {
			if n, _ := countElements(doc); want && n < 0 || !want && n >= 0 && !g.within {
				t.Errorf("%x: got %d elements, the grammar says %v", doc, n, want)
			}
		}
		if want {
			valid++
		} else {
			damaged++
		}
	}
	for _, doc := range oneOfEach(t) {
		check(doc)
		for i := 4; i < len(doc); i++ {
			for _, b := range []byte{0, 1, 2, 4, 5, 0x0c, 0x0f, 0x14, 0x7f, 0x80, 0xff, doc[i] - 1, doc[i] + 1, doc[i] + 2} {
				other := bytes.Clone(doc)
				other[i] = b
				check(other)
			}
			short := bytes.Clone(doc[:i])
			check(short)
			binary.LittleEndian.PutUint32(short, uint32(len(short)))
			check(short)
		}
	}
	// Every length from -1 on, before every number of bytes.
	for _, bt := range []bson.Type{
		bson.TypeString, bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeBinary, bson.TypeDBPointer, bson.TypeJavaScript, bson.TypeSymbol, bson.TypeCodeWithScope,
	} {
		for n := -1; n < 28; n++ {
			for size := range 28 {
				for _, fill := range []byte{0, 1, 2} {
					doc := append(binary.LittleEndian.AppendUint32([]byte{0, 0, 0, 0, byte(bt), 0}, uint32(n)), bytes.Repeat([]byte{fill}, size)...)
					doc = append(doc, 0)
					for _, cut := range []int{0, 1, 2} { // of the length
						short := append(bytes.Clone(doc[:len(doc)-cut]), 0)
						binary.LittleEndian.PutUint32(short, uint32(len(short)))
						check(short)
					}
				}
			}
		}
	}
	if valid < 1000 || damaged < 1000 {
		t.Errorf("%d documents are valid and %d are not", valid, damaged)
	}
}

// The elements of a document are counted, and the shortest measured, as the driver lists them.
func TestCountElements(t *testing.T) {
	for _, doc := range oneOfEach(t) {
		elements, err := doc.Elements()
		if err != nil {
			t.Fatal(err)
		}
		least := len(doc)
		for _, e := range elements {
			least = min(least, len(e))
			if got, want := keyEnd(e), 1+len(e.Key()); got != want {
				t.Errorf("%v: the key ends at %d, want %d", e, got, want)
			}
			for _, name := range []string{"", "a", "b", "key", "ke", "keys", e.Key()} {
				if hasKey(e, name) != (e.Key() == name) {
					t.Errorf("%v: hasKey(%q) is %v", e, name, hasKey(e, name))
				}
			}
			if keyEnd(e[:1+len(e.Key())]) >= 0 {
				t.Errorf("%v: a key without an end has one", e)
			}
		}
		if n, l := countElements(doc); n != len(elements) || l != least {
			t.Errorf("%v: got %d elements of %d bytes or more, want %d of %d", doc, n, l, len(elements), least)
		}
	}
}

// Documents are valid up to 200 levels, whatever holds them.
func TestDepthOfDocuments(t *testing.T) {
	for name, within := range map[string]func(doc []byte) (t byte, value []byte){
		"documents": func(doc []byte) (byte, []byte) { return byte(bson.TypeEmbeddedDocument), doc },
		"scopes": func(doc []byte) (byte, []byte) {
			value := append([]byte{0, 0, 0, 0, 1, 0, 0, 0, 0}, doc...)
			binary.LittleEndian.PutUint32(value, uint32(len(value)))
			return byte(bson.TypeCodeWithScope), value
		},
	} {
		doc := []byte{5, 0, 0, 0, 0}
		for depth := range 210 {
			if got := validDocument(doc, 0); got != (depth <= 200) {
				t.Errorf("%d levels of %s: got %v", depth, name, got)
			}
			bt, value := within(doc)
			if got := checkValue(bt, value, 0) == len(value); got != (depth < 200) {
				t.Errorf("%d levels in a value of %s: got %v", depth, name, got)
			}
			doc = append(append([]byte{0, 0, 0, 0, bt, 'a', 0}, value...), 0)
			binary.LittleEndian.PutUint32(doc, uint32(len(doc)))
		}
	}
}

// A single value is valid if the grammar reads all of it. Nothing follows it in memory, unlike in a document.
func TestCheckValue(t *testing.T) {
	valid, damaged := 0, 0
	check := func(bt bson.Type, value []byte) {
		g := &grammar{rest: value}
		g.value(bt)
		want := !g.bad && len(g.rest) == 0
		if got := checkValue(byte(bt), value, 0) == len(value); got != want {
			t.Errorf("%v, %x: got %v, the grammar says %v", bt, value, got, want)
		}
		if want {
			valid++
			if n := valueSize(byte(bt), value); n != len(value) {
				t.Errorf("%v, %x: the size is %d, want %d", bt, value, n, len(value))
			}
		} else {
			damaged++
		}
	}
	for _, doc := range oneOfEach(t) {
		e, err := doc.IndexErr(0)
		if err != nil {
			t.Fatal(err)
		}
		v := e.Value()
		check(v.Type, v.Value)
		check(0x44, v.Value)
		for i, b := range v.Value {
			check(v.Type, bytes.Clone(v.Value[:i]))
			for _, other := range []byte{0, 1, 4, 5, 0x7f, 0xff, b - 1, b + 1} {
				value := bytes.Clone(v.Value)
				value[i] = other
				check(v.Type, value)
				check(v.Type, append(value, 0))
			}
		}
	}
	for _, bt := range []bson.Type{bson.TypeString, bson.TypeEmbeddedDocument, bson.TypeBinary, bson.TypeDBPointer, bson.TypeCodeWithScope} {
		for n := -1; n < 28; n++ {
			for size := range 28 {
				for _, fill := range []byte{0, 1, 2} {
					check(bt, append(binary.LittleEndian.AppendUint32(nil, uint32(n)), bytes.Repeat([]byte{fill}, size)...))
				}
			}
		}
	}
	if valid < 100 || damaged < 1000 {
		t.Errorf("%d values are valid and %d are not", valid, damaged)
	}
}

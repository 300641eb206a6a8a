package autoid

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// counter is a source of the ids 1, 2, 3, ... as int32.
type counter struct {
	mu sync.Mutex
	n  int32
}

func (c *counter) NewID() (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n, nil
}

func (c *counter) drawn() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.n)
}

func registered() *bson.Registry {
	reg := bson.NewRegistry()
	Register(reg)
	return reg
}

type setting func(*bson.Encoder)

// encode encodes doc as the driver's marshal function does. A byte slice is a raw document.
func encode(reg *bson.Registry, doc any, set ...setting) ([]byte, error) {
	if b, ok := doc.([]byte); ok {
		doc = bson.Raw(b)
	}
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	for _, s := range set {
		s(enc)
	}
	err := enc.Encode(doc)
	return buf.Bytes(), err
}

// withID returns the encoded document doc with id as its first element, unless it has an _id, as
// the driver's ensureID does.
func withID(t testing.TB, doc []byte, id any) []byte {
	t.Helper()
	if _, err := bson.Raw(doc).LookupErr("_id"); err == nil {
		return doc
	}
	head, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		t.Fatal(err)
	}
	out := append(head[:len(head)-1:len(head)-1], doc[4:]...)
	out[0], out[1], out[2], out[3] = byte(len(out)), byte(len(out)>>8), byte(len(out)>>16), byte(len(out)>>24)
	return out
}

func hex(b []byte) string { return fmt.Sprintf("%x (%v)", b, bson.Raw(b)) }

type marshaler struct{ doc bson.D }

func (m marshaler) MarshalBSON() ([]byte, error) { return bson.Marshal(m.doc) }

type pointerMarshaler struct{ doc bson.D }

func (m *pointerMarshaler) MarshalBSON() ([]byte, error) { return bson.Marshal(m.doc) }

type valueMarshaler struct{ doc bson.D }

func (m valueMarshaler) MarshalBSONValue() (byte, []byte, error) {
	b, err := bson.Marshal(m.doc)
	return byte(bson.TypeEmbeddedDocument), b, err
}

type shouting string

func (s shouting) String() string { return "_id" }

type plainKey string

type base struct {
	ID   bson.ObjectID `bson:"_id,omitempty"`
	When time.Time     `bson:"when,omitempty"`
}

type oddD []bson.E

type loop *loop

// odd is a type whose IsZero method reports true for every value but zero.
type odd int32

func (o odd) IsZero() bool { return o != 0 }

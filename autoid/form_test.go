package autoid

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestIDsWithoutCodec inserts with an _id of a type without a codec, behind pointers and interfaces: an error as that of the
// driver, each time. The driver's own codec of pointers panics the second time.
func TestIDsWithoutCodec(t *testing.T) {
	c := make(chan int)
	p := &c
	var held any = p
	deep := reflect.ValueOf(c)
	for range maxPointers - 1 { // an interface comes before it
		next := reflect.New(deep.Type())
		next.Elem().Set(deep)
		deep = next
	}
	for name, newRegistry := range registries(t) {
		for what, id := range map[string]any{"*T": p, "**T": &p, "*any": &held, "deep": deep.Interface()} {
			for form, doc := range map[string]any{
				"D": bson.D{{Key: "_id", Value: id}}, "M": bson.M{"_id": id}, "struct": idOf[any]{id}, "late": &lateID[any]{ID: id},
			} {
				_, want := encode(newRegistry(), doc)
				reg := newRegistry()
				for range 2 {
					if _, err := encode(reg, Document(&counter{}, doc)); err == nil || want == nil || err.Error() != want.Error() {
						t.Errorf("%s: %s in %s: got %v, the driver %v", name, what, form, err, want)
					}
				}
			}
			reg := newRegistry()
			for range 2 {
				for _, doc := range []any{bson.D{}, omitID[int]{}, omitID[any]{}} {
					var failed *IDError
					if _, err := encode(reg, Document(always(id), doc)); !errors.As(err, &failed) || failed.Err.Error() != "no encoder found for chan int" {
						t.Errorf("%s: %s from the source into a %T: got %v", name, what, doc, err)
					}
				}
			}
		}
		for _, doc := range []any{
			idOf[*chan int]{p}, idOf[struct{ C *chan int }]{struct{ C *chan int }{p}}, idOf[bson.D]{bson.D{{Key: "c", Value: p}}},
			idOf[map[string]*chan int]{map[string]*chan int{"c": p}}, idOf[[]*chan int]{[]*chan int{p}},
		} {
			_, want := encode(newRegistry(), doc)
			if _, err := encode(newRegistry(), Document(&counter{}, doc)); err == nil || want == nil || err.Error() != want.Error() {
				t.Errorf("%s: %T: got %v, the driver %v", name, doc, err, want)
			}
		}
	}
}

// TestNilBehindPointers tests that an id that is a pointer to a nil interface is a nil id.
func TestNilBehindPointers(t *testing.T) {
	var held any
	if _, err := encode(registered(), Document(always(&held), bson.D{})); !errors.Is(err, errNilID) {
		t.Errorf("got %v", err)
	}
	if _, err := encode(registered(), Document(&counter{}, bson.D{{Key: "_id", Value: &held}})); !errors.Is(err, ErrZeroID) {
		t.Errorf("got %v", err)
	}
	if raw, err := encodeValue(bson.EncodeContext{Registry: registered()}, nil); err != nil || raw.Type != bson.TypeNull {
		t.Errorf("got %v, %v", raw, err)
	}
}

type octets []byte

// TestZeroContainers tests that nil maps and slices, which are encoded as null, and zero octets are refused.
func TestZeroContainers(t *testing.T) {
	for name, newRegistry := range registries(t) {
		for _, doc := range []any{
			idOf[map[string]int]{}, idOf[[]int]{}, idOf[bson.D]{}, idOf[bson.M]{}, idOf[octets]{make(octets, 16)}, idOf[[]byte]{make([]byte, 16)},
		} {
			if b, err := encode(newRegistry(), Document(&counter{}, doc)); !errors.Is(err, ErrZeroID) {
				t.Errorf("%s: %#v: got %v, %v", name, doc, b, err)
			}
		}
		for _, doc := range []any{idOf[map[string]int]{map[string]int{}}, idOf[[]int]{[]int{}}, idOf[bson.D]{bson.D{}}, idOf[octets]{octets{}}} {
			if b, err := encode(newRegistry(), Document(&counter{}, doc)); err != nil {
				t.Errorf("%s: %#v: got %v, %v", name, doc, b, err)
			}
		}
	}
}

// TestZeroBehindInterfaces tests that a zero _id is refused behind interfaces of every kind, and through pointers.
func TestZeroBehindInterfaces(t *testing.T) {
	var zero any = uuid.Nil
	var none fmt.Stringer
	for name, newRegistry := range registries(t) {
		if name == "driver" {
			continue // which has no codec for a UUID, and calls its text method
		}
		for _, doc := range []any{
			idOf[fmt.Stringer]{uuid.Nil}, idOf[fmt.Stringer]{&uuid.Nil}, idOf[fmt.Stringer]{none}, idOf[any]{&zero}, idOf[*any]{&zero},
			idOf[fmt.Stringer]{bson.NilObjectID},
		} {
			if b, err := encode(newRegistry(), Document(&counter{}, doc)); !errors.Is(err, ErrZeroID) {
				t.Errorf("%s: %#v: got %v, %v", name, doc, b, err)
			}
		}
	}
}

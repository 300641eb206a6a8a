// Package version1 has methods in the form of version 1 of the driver. // want package:`driver: `
package version1

import "go.mongodb.org/mongo-driver/v2/bson"

type A [16]byte

func (a A) MarshalBSONValue() (bson.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	if a == (A{}) {
		return bson.TypeNull, nil, nil
	}
	return 5, append([]byte{16, 0, 0, 0, 4}, a[:]...), nil
}

func (a *A) UnmarshalBSONValue(_ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	copy(a[:], data[5:])
	return nil
}

type B struct{ h H }

func (b B) MarshalBSONValue() (typ bson.Type, data []byte, err error) { // want `ignores this form of MarshalBSONValue`
	typ = bson.TypeNull
	return
}

func (b *B) UnmarshalBSONValue(typ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	if typ == bson.TypeNull {
		return nil
	}
	return b.h.UnmarshalBSONValue(typ, data)
}

// C has the form of version 2.
type C struct{}

func (C) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }
func (*C) UnmarshalBSONValue(byte, []byte) error  { return nil }

// MarshalBSONValue is not a method.
func MarshalBSONValue() (bson.Type, []byte, error) { return 0, nil, nil }

// D returns what a call returns.
type D struct{ name string }

func (d D) MarshalBSONValue() (bson.Type, []byte, error) { // want `what version 2 has stored since without it has another form`
	return bson.MarshalValue(d.name)
}

func (d *D) UnmarshalBSONValue(_ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	d.name = string(data)
	return nil
}

// E has a method that cannot be mended, so that the other one stays, too.
type E struct{ name string }

func (e E) MarshalBSONValue() (bson.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	data := e.name
	return bson.MarshalValue(data)
}

func (e *E) UnmarshalBSONValue(_ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	e.name = string(data)
	return nil
}

// F writes a form that nothing reads.
type F struct{ name string }

func (f F) MarshalBSONValue() (bson.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	return bson.TypeString, []byte(f.name), nil
}

// G is half mended.
type G struct{ name string }

func (g G) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeString), []byte(g.name), nil
}

func (g *G) UnmarshalBSONValue(_ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	g.name = string(data)
	return nil
}

// H has a method that B calls.
type H struct{ name string }

func (h H) MarshalBSONValue() (bson.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	return bson.MarshalValue(h.name)
}

func (h *H) UnmarshalBSONValue(_ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	h.name = string(data)
	return nil
}

// I uses the type of the value.
type I struct{ name string }

func (i I) MarshalBSONValue() (bson.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	return bson.MarshalValue(i.name)
}

func (i *I) UnmarshalBSONValue(t bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	return bson.UnmarshalValue(t, data, &i.name)
}

// J has the name that the fix prefers.
type J struct{ name string }

func (j J) MarshalBSONValue() (bson.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	return bson.MarshalValue(j.name)
}

func (j *J) UnmarshalBSONValue(typ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	if typ != bson.TypeString {
		return nil
	}
	return bson.UnmarshalValue(typ, data, &j.name)
}

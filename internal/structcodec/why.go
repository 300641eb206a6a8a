package structcodec

import (
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

const unknownContext = "its fields have options that are not known"

func noCodec(key string, t reflect.Type) string { return fmt.Sprintf("%s (%v) has no codec", key, t) }

// A Reason is why a plan does not do all the work for values of a type, or none of it.
type Reason struct {
	Path string       // of the part, by the keys of the fields; "" for the whole
	Type reflect.Type // of the part
	Text string       // follows the name of the part, as in "has no codec"
}

// reasons collects why parts of values are not encoded, or not decoded, by plans. It looks at each type once.
type reasons struct {
	found []Reason
	seen  map[any]bool // an encodedType or a decodedType
}

func (r *reasons) add(path string, t reflect.Type, format string, args ...any) {
	r.found = append(r.found, Reason{path, t, fmt.Sprintf(format, args...)})
}

func within(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// hasElements reports whether the driver's codec k has codecs of its own for the elements of values of type t.
func hasElements(t reflect.Type, k known) bool {
	switch k {
	case knownPointer, knownSlice, knownArray, knownMap:
		return t.Kind() != reflect.Slice && t.Kind() != reflect.Array || t.Elem() != tByte && t.Elem() != tE
	}
	return false
}

const partsWithoutOptions = "goes through its codec, %T, which takes part in plans without options only"

// WhyNotEncoded returns why values of type t are not encoded by plans in the context ec: nothing if they are. The values in
// interfaces have reasons of their own.
func (c *Codec) WhyNotEncoded(ec bson.EncodeContext, t reflect.Type) []Reason {
	r := &reasons{seen: map[any]bool{}}
	if e := c.encodeModeIn(&ec); e == nil {
		r.add("", t, "has a registry or options that are not known")
	} else {
		r.encoded(e, "", t)
	}
	return r.found
}

func (r *reasons) encoded(c *encodeMode, path string, t reflect.Type) {
	if key := (encodedType{c, t}); r.seen[key] {
		return
	} else {
		r.seen[key] = true
	}
	enc, err := c.encoderOf(t)
	if err != nil {
		if t.Kind() != reflect.Interface { // the value in it has one
			r.add(path, t, "has no codec")
		}
		return
	}
	resolved := c.resolveEncoder(enc, t)
	if _, ok := resolved.(ValueCodec); ok {
		if c.valueCodec(resolved) == nil {
			r.add(path, t, partsWithoutOptions, resolved)
		}
		return
	}
	if same(resolved, c.Codec) && t.Kind() == reflect.Struct {
		p := c.encodePlan(t)
		if !p.planned {
			r.add(path, t, "is encoded by the driver: %s", p.why)
			return
		}
		for i := range p.fields {
			r.encoded(p.fields[i].in, within(path, p.fields[i].Name), p.fields[i].Type)
		}
		if p.inline != nil {
			r.encoded(c, within(path, "*"), t.Field(p.inline.index).Type.Elem())
		}
		return
	}
	before := len(r.found)
	if hasElements(t, knownEncoder(resolved)) {
		r.encoded(c, path, t.Elem())
	}
	var planned bool
	c.compileEncoder(func(plans encodeCompiler) {
		f, ok := plans.compile(t, enc)
		planned = ok && !sameCode(f, c.opaque(enc, ""))
	})
	if !planned && len(r.found) == before {
		own := driver.IsOwnEncoder(enc, t)
		r.add(path, t, "goes through %s", codecName(enc, own, knownEncoder(resolved), t, "MarshalBSONValue", "MarshalBSON"))
	}
}

// WhyNotDecoded returns why values of type t are not decoded by plans in the context dc: nothing if they are.
func (c *Codec) WhyNotDecoded(dc bson.DecodeContext, t reflect.Type) []Reason {
	r := &reasons{seen: map[any]bool{}}
	if d := c.decodeModeIn(&dc); d == nil {
		r.add("", t, "has a registry or options that are not known")
	} else {
		r.decoded(d, "", t)
	}
	return r.found
}

func (r *reasons) decoded(c *decodeMode, path string, t reflect.Type) {
	if key := (decodedType{c, t}); r.seen[key] {
		return
	} else {
		r.seen[key] = true
	}
	dec, err := c.decoderOf(t)
	if err != nil {
		r.add(path, t, "has no codec")
		return
	}
	resolved := c.resolveDecoder(dec, t)
	if _, ok := resolved.(ValueCodec); ok {
		if c.valueCodec(resolved) == nil {
			r.add(path, t, partsWithoutOptions, resolved)
		}
		return
	}
	if same(resolved, c.Codec) && t.Kind() == reflect.Struct {
		p := c.decodePlan(t)
		if !p.planned {
			r.add(path, t, "is decoded by the driver: %s", p.why)
			return
		}
		for i := range p.fields {
			r.decoded(p.fields[i].in, within(path, p.fields[i].Name), p.fields[i].Type)
		}
		if p.inline != nil {
			r.decoded(c, within(path, "*"), p.inline.mapType.Elem())
		}
		return
	}
	before := len(r.found)
	switch k := knownDecoder(resolved); {
	case hasElements(t, k):
		r.decoded(c, path, t.Elem())
	case k == knownD:
		r.decoded(c, path, tAny)
	}
	var planned bool
	c.compileDecoder(func(plans decodeCompiler) {
		f, ok := plans.compile(t, dec)
		planned = ok && !sameCode(f, c.slow(dec))
	})
	if !planned && len(r.found) == before {
		own := driver.IsOwnDecoder(dec, t)
		r.add(path, t, "goes through %s", codecName(dec, own, knownDecoder(resolved), t, "UnmarshalBSONValue", "UnmarshalBSON"))
	}
}

// sameCode reports whether two functions are one, whatever values they have from around them.
func sameCode(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

// codecName returns what readers know the codec of values of type t by: the method of t if the codec is the driver's own
// for t, and nothing more for another one of the driver, which is k.
func codecName(codec any, own bool, k known, t reflect.Type, methods ...string) string {
	if own {
		for _, name := range methods {
			if _, ok := t.MethodByName(name); ok {
				return "its method " + name
			}
			if _, ok := reflect.PointerTo(t).MethodByName(name); ok {
				return "its method " + name
			}
		}
	}
	if k != unknown {
		return "the driver's codec"
	}
	return fmt.Sprintf("its codec, %T", codec)
}

package structcodec

import (
	"reflect"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// perContext keeps a value for each of a few contexts. It is safe for concurrent use.
type perContext[C comparable, V any] struct {
	adding sync.Mutex
	kept   atomic.Pointer[[]contextEntry[C, V]]
}

type contextEntry[C comparable, V any] struct {
	context C
	value   V
}

// get returns the value for c, which is what make returns on the first call.
func (m *perContext[C, V]) get(c C, make func() V) V {
	if v, ok := m.load(c); ok {
		return v
	}
	m.adding.Lock()
	defer m.adding.Unlock()
	if v, ok := m.load(c); ok {
		return v
	}
	var entries []contextEntry[C, V]
	if kept := m.kept.Load(); kept != nil {
		entries = append(entries, *kept...)
	}
	v := make()
	entries = append(entries, contextEntry[C, V]{c, v})
	m.kept.Store(&entries)
	return v
}

func (m *perContext[C, V]) load(c C) (v V, ok bool) {
	kept := m.kept.Load()
	if kept == nil {
		return v, false
	}
	for i := range *kept {
		if e := &(*kept)[i]; e.context == c {
			return e.value, true
		}
	}
	return v, false
}

// An encodeMode is a Codec in one EncodeContext, with the plans for it.
type encodeMode struct {
	*Codec
	ec bson.EncodeContext
	driver.Options
	plain bool // there are no options

	encPlans  typeMap[*encodePlan]
	dynamic   typeMap[appendFunc] // of the values in interfaces
	documents typeMap[*documentPlan]

	fields [2]func() *encodeMode // of fields without and with the tag minsize
}

func (c *Codec) newEncodeMode(ec bson.EncodeContext, o driver.Options) *encodeMode {
	e := &encodeMode{Codec: c, ec: ec, Options: o, plain: o == driver.Options{}}
	field := func(minSize bool) func() *encodeMode {
		return sync.OnceValue(func() *encodeMode {
			f := driver.FieldEncodeContext(ec, minSize)
			return c.encodeModeIn(&f)
		})
	}
	e.fields = [2]func() *encodeMode{field(false), field(true)}
	return e
}

// encodeModeIn returns the encodeMode for ec, nil if ec is not a context of the registry or has options that are not known.
func (c *Codec) encodeModeIn(ec *bson.EncodeContext) *encodeMode {
	if *ec == c.encodeMode.ec {
		return c.encodeMode
	}
	return c.encodeModeWith(*ec)
}

// encodeModeWith is encodeModeIn for a context with options, and for another registry.
func (c *Codec) encodeModeWith(ec bson.EncodeContext) *encodeMode {
	if ec.Registry != c.reg {
		return nil
	}
	return c.encodeModes.get(ec, func() *encodeMode {
		o, ok := driver.EncodeOptions(ec)
		if !ok {
			return nil
		}
		return c.newEncodeMode(ec, o)
	})
}

// field returns the encodeMode of the fields of structs, with the tag minsize or without, nil if it is not known.
func (e *encodeMode) field(minSize bool) *encodeMode {
	if minSize {
		return e.fields[1]()
	}
	if e.plain {
		return e
	}
	return e.fields[0]()
}

// A decodeMode is a Codec in one DecodeContext, with the plans for it.
type decodeMode struct {
	*Codec
	dc bson.DecodeContext
	driver.Options
	documentType reflect.Type // of documents in any, nil if the type map has it
	plain        bool         // there are no options

	decPlans typeMap[*decodePlan]
	values   typeMap[readFunc] // of values that are not part of a document, nil if the driver must do it
	any      func() *anyReader

	fields [2]func() *decodeMode // of fields without and with the tag truncate
}

func (c *Codec) newDecodeMode(dc bson.DecodeContext, o driver.Options) *decodeMode {
	d := &decodeMode{Codec: c, dc: dc, Options: o, plain: o == driver.Options{}}
	switch {
	case o.DefaultDocumentMap:
		d.documentType = tMap
	case o.DefaultDocumentM:
		d.documentType = tM
	}
	d.any = sync.OnceValue(d.newAnyReader)
	field := func(truncate bool) func() *decodeMode {
		return sync.OnceValue(func() *decodeMode {
			f := driver.FieldDecodeContext(dc, truncate)
			return c.decodeModeIn(&f)
		})
	}
	d.fields = [2]func() *decodeMode{field(false), field(true)}
	return d
}

// decodeModeIn returns the decodeMode for dc, nil if dc is not a context of the registry or has options that are not known.
// A nil dc is that of the registry without options: comparing two contexts takes as long as a field.
func (c *Codec) decodeModeIn(dc *bson.DecodeContext) *decodeMode {
	if dc == nil || *dc == c.decodeMode.dc {
		return c.decodeMode
	}
	return c.decodeModeWith(*dc)
}

// decodeModeWith is decodeModeIn for a context with options, and for another registry.
func (c *Codec) decodeModeWith(dc bson.DecodeContext) *decodeMode {
	if dc.Registry != c.reg {
		return nil
	}
	return c.decodeModes.get(dc, func() *decodeMode {
		o, ok := driver.DecodeOptions(dc)
		if !ok {
			return nil
		}
		return c.newDecodeMode(dc, o)
	})
}

// field returns the decodeMode of the fields of structs, with the tag truncate or without, nil if it is not known.
func (d *decodeMode) field(truncate bool) *decodeMode {
	if truncate {
		return d.fields[1]()
	}
	if d.plain {
		return d
	}
	return d.fields[0]()
}

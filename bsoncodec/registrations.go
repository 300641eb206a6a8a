package bsoncodec

import (
	"maps"
	"reflect"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// A registration is a row of the table of what a builder registers.
type registration struct {
	at      []stage
	targets func(stage) []target
	over    precedence

	// They return the codec to register for t: a type, or the probe type of a kind or a method. What the registry has for t
	// is own, which is nil with overAny. If they are nil or return nil, nothing is registered.
	encoder func(t reflect.Type, own bson.ValueEncoder) bson.ValueEncoder
	decoder func(t reflect.Type, own bson.ValueDecoder) bson.ValueDecoder
}

// A precedence says whose codec gives way.
type precedence uint8

const (
	overAny    precedence = iota // that of the caller, too
	overDriver                   // the driver's own; a codec of the caller's stays
	overHooks                    // the driver's own and a hook; a codec of the caller's for the type stays
	overOurs                     // that of this package, which stays the fallback
)

// A target is a type, a kind or a method for which a codec is registered.
type target struct {
	t       reflect.Type // the type, or a probe type of the kind or the method
	general bool         // it is a kind or a method
	encoder func(*bson.Registry, bson.ValueEncoder)
	decoder func(*bson.Registry, bson.ValueDecoder)
}

func forTypes(types ...reflect.Type) func(stage) []target {
	return func(stage) (all []target) {
		for _, t := range types {
			all = append(all, target{
				t:       t,
				encoder: func(reg *bson.Registry, enc bson.ValueEncoder) { reg.RegisterTypeEncoder(t, enc) },
				decoder: func(reg *bson.Registry, dec bson.ValueDecoder) { reg.RegisterTypeDecoder(t, dec) },
			})
		}
		return all
	}
}

func forKinds(kinds ...reflect.Kind) func(stage) []target {
	return func(s stage) (all []target) {
		for _, kind := range kinds {
			all = append(all, target{
				t: probes[s].kinds[kind], general: true,
				encoder: func(reg *bson.Registry, enc bson.ValueEncoder) { reg.RegisterKindEncoder(kind, enc) },
				decoder: func(reg *bson.Registry, dec bson.ValueDecoder) { reg.RegisterKindDecoder(kind, dec) },
			})
		}
		return all
	}
}

// forMethod returns the types that have the method of the interface iface.
func forMethod(iface reflect.Type) func(stage) []target {
	return func(s stage) []target {
		return []target{{
			t: probes[s].methods[iface], general: true,
			encoder: func(reg *bson.Registry, enc bson.ValueEncoder) { reg.RegisterInterfaceEncoder(iface, enc) },
			decoder: func(reg *bson.Registry, dec bson.ValueDecoder) { reg.RegisterInterfaceDecoder(iface, dec) },
		}}
	}
}

// forTypeMap returns the type that any receives for values of a BSON type.
func forTypeMap(of bson.Type, t reflect.Type) func(stage) []target {
	return func(stage) []target {
		return []target{{t: t, decoder: func(reg *bson.Registry, dec bson.ValueDecoder) {
			reg.RegisterTypeMapEntry(of, t)
			reg.RegisterTypeDecoder(t, dec)
		}}}
	}
}

// isOurs reports whether codec is that of this package for a kind or a method.
func isOurs(codec any) bool {
	switch codec.(type) {
	case *structEncoder, *structDecoder, *arrayCodec, *mapCodec, *kindEncoder, *methodEncoder, *methodDecoder:
		return true
	}
	return false
}

// gives reports whether codec gives way. It can be the driver's own for the target, or that of a hook.
func (p precedence) gives(to target, codec any, drivers, hook bool) bool {
	switch p {
	case overDriver: // for a type, the codec of this package for its kind counts as the driver's
		return drivers && !(to.general && isOurs(codec))
	case overHooks:
		return drivers || hook
	case overOurs:
		return isOurs(codec)
	}
	return true
}

// register registers the codecs of r in reg.
func (r *registration) register(reg *bson.Registry, s stage) {
	for _, to := range r.targets(s) {
		if r.encoder != nil {
			var own bson.ValueEncoder
			if r.over != overAny {
				own = encoderOf(reg, to.t)
			}
			hook := r.over == overHooks && driver.IsHookEncoder(reg, own, to.t)
			if r.over.gives(to, own, driver.IsOwnEncoder(own, to.t), hook) {
				if enc := r.encoder(to.t, own); enc != nil {
					to.encoder(reg, enc)
				}
			}
		}
		if r.decoder != nil {
			var own bson.ValueDecoder
			if r.over != overAny {
				own = decoderOf(reg, to.t)
			}
			hook := r.over == overHooks && driver.IsHookDecoder(reg, own, to.t)
			if r.over.gives(to, own, driver.IsOwnDecoder(own, to.t), hook) {
				if dec := r.decoder(to.t, own); dec != nil {
					to.decoder(reg, dec)
				}
			}
		}
	}
}

// An application registers the codecs of a builder in one registry.
type application struct {
	reg        *bson.Registry
	conversion *conversion
	rules      *typeRules

	types, nulls, documents []reflect.Type // that are registered as UUIDs, as UUIDs that can be null, and as documents
	implicit                reflect.Type   // what any receives for a UUID
	keepBinary              bool           // any receives a bson.Binary instead

	uuids  map[reflect.Type]*uuidCodec
	funcs  map[reflect.Type]*funcCodec
	arrays *arrayCodec
	maps   *mapCodec
	plans  *structcodec.Codec // nil before the stage afterAll
}

// register registers the codecs of a stage.
func (a *application) register(s stage) {
	for _, r := range a.table() {
		if slices.Contains(r.at, s) {
			r.register(a.reg, s)
		}
	}
}

// registerPlans registers the codecs with plans before those that are there. It returns the one that has the plans.
func (a *application) registerPlans() *structcodec.Codec {
	t := probes[afterAll].kinds[reflect.Struct]
	a.plans = structcodec.New(a.reg, encoderOf(a.reg, t), decoderOf(a.reg, t), ErrNotPlain)
	a.register(afterAll)
	return a.plans
}

// table returns what is registered at each stage, in this order.
func (a *application) table() []registration {
	// A codec of the caller's can wrap what it finds in the registry, and must find a codec of this package then. If the
	// caller registers the driver's again, that gives way, too.
	twice := []stage{beforeWith, afterWith}
	before := []stage{beforeWith}
	after := []stage{afterWith}
	plans := []stage{afterAll}

	return []registration{
		// Each kind of which a type can be refused. The codec of structs also keeps the fields of a type for each set of
		// options: the driver's keeps those of the first.
		{at: twice, targets: forKinds(reflect.Struct), over: overDriver, encoder: a.structEncoder, decoder: a.structDecoder},
		{at: twice, targets: forKinds(reflect.Array), over: overDriver, encoder: a.arrayEncoder, decoder: a.arrayDecoder},
		{at: twice, targets: forKinds(reflect.Int64, reflect.String, reflect.Slice), over: overDriver, encoder: a.kindEncoder},

		// The methods, which the driver asks before the kind.
		{at: twice, targets: forMethod(tValueMarshaler), over: overDriver, encoder: a.methodEncoder(method{})},
		{at: twice, targets: forMethod(tMarshaler), over: overDriver, encoder: a.methodEncoder(method{whole: true})},
		{at: twice, targets: forMethod(tValueUnmarshaler), over: overDriver, decoder: a.methodDecoder(method{decode: true})},
		{at: twice, targets: forMethod(tUnmarshaler), over: overDriver, decoder: a.methodDecoder(method{decode: true, whole: true})},

		// The types around UUIDs: a codec of the caller's for one of them takes its place, and a hook does not.
		{at: before, targets: forTypes(a.nulls...), over: overHooks, encoder: a.nullEncoder, decoder: a.nullDecoder},
		{at: before, targets: forTypes(a.documents...), over: overHooks, encoder: a.documentEncoder, decoder: a.documentDecoder},
		{at: before, targets: forTypes(a.pointerTypes()...), encoder: pointerEncoder, decoder: pointerDecoder},

		// The UUIDs. One registry has one representation, so that a codec of the caller's gives way, and so do hooks.
		{at: after, targets: forTypes(a.types...), encoder: a.uuidEncoder, decoder: a.uuidDecoder},
		{at: after, targets: forTypes(slices.Collect(maps.Keys(a.funcs))...), encoder: a.funcEncoder, decoder: a.funcDecoder},
		{at: after, targets: forTypes(a.sliceTypes()...), over: overDriver, encoder: a.sliceEncoder, decoder: a.sliceDecoder},
		{at: after, targets: forKinds(reflect.Map), over: overDriver, encoder: a.mapEncoder, decoder: a.mapDecoder},

		// What any receives.
		{at: after, targets: forTypes(tAnys, tA), over: overDriver, decoder: a.anySliceDecoder},
		{at: after, targets: forTypeMap(bson.TypeBinary, tBinaryValue), decoder: a.binaryValueDecoder},

		// The types of this package by which the driver is given its own readers.
		{at: after, targets: forTypes(tAnySlot), decoder: func(reflect.Type, bson.ValueDecoder) bson.ValueDecoder {
			return bson.ValueDecoderFunc(decodeAnySlot)
		}},
		{at: after, targets: forTypes(tSlowSlice), decoder: func(reflect.Type, bson.ValueDecoder) bson.ValueDecoder {
			return bson.ValueDecoderFunc(decodeSlowSlice)
		}},

		// The plans. What the codecs here do not know is left to the driver: other settings of structs than those of
		// [bson.NewRegistry], and a bson.D that a hook takes, which has not the encoder of slices.
		{at: plans, targets: forKinds(reflect.Struct), over: overOurs, encoder: a.structPlanEncoder, decoder: a.structPlanDecoder},
		{at: plans, targets: forKinds(reflect.Slice), over: overOurs, encoder: a.planEncoder},
		{at: plans, targets: forKinds(reflect.Map), over: overOurs, encoder: a.planEncoder, decoder: a.planDecoder},
		{at: plans, targets: forTypes(tD), over: overDriver, decoder: a.planDecoder},
	}
}

func (a *application) structEncoder(_ reflect.Type, own bson.ValueEncoder) bson.ValueEncoder {
	newCodec := driver.NewStructEncoder(own)
	if newCodec == nil {
		return nil
	}
	c := &structEncoder{plain: newCodec(), rules: a.rules}
	c.other.make = func(bson.EncodeContext) bson.ValueEncoder { return newCodec() }
	a.rules.encodesEmbedded = driver.EncodesEmbedded(c.plain)
	return c
}

func (a *application) structDecoder(_ reflect.Type, own bson.ValueDecoder) bson.ValueDecoder {
	newCodec := driver.NewStructDecoder(own)
	if newCodec == nil {
		return nil
	}
	c := &structDecoder{plain: newCodec(), rules: a.rules}
	c.other.make = func(bson.DecodeContext) bson.ValueDecoder { return newCodec() }
	a.rules.decodesEmbedded = driver.DecodesEmbedded(c.plain)
	return c
}

func (a *application) arrayEncoder(reflect.Type, bson.ValueEncoder) bson.ValueEncoder {
	return a.arrays
}

func (a *application) arrayDecoder(reflect.Type, bson.ValueDecoder) bson.ValueDecoder {
	return a.arrays
}

func (a *application) kindEncoder(_ reflect.Type, own bson.ValueEncoder) bson.ValueEncoder {
	return &kindEncoder{own}
}

func (a *application) methodEncoder(m method) func(reflect.Type, bson.ValueEncoder) bson.ValueEncoder {
	return func(_ reflect.Type, own bson.ValueEncoder) bson.ValueEncoder {
		return &methodEncoder{m, a.rules, own}
	}
}

func (a *application) methodDecoder(m method) func(reflect.Type, bson.ValueDecoder) bson.ValueDecoder {
	return func(_ reflect.Type, own bson.ValueDecoder) bson.ValueDecoder {
		return &methodDecoder{m, a.rules, own}
	}
}

func (a *application) nullEncoder(t reflect.Type, _ bson.ValueEncoder) bson.ValueEncoder {
	if a.rules.documents[t] {
		return nil
	}
	return newNullUUIDCodec(t)
}

func (a *application) nullDecoder(t reflect.Type, _ bson.ValueDecoder) bson.ValueDecoder {
	c := newNullUUIDCodec(t)
	if a.rules.documents[t] && !c.isWhole() {
		return nil
	}
	return c
}

func (a *application) documentEncoder(reflect.Type, bson.ValueEncoder) bson.ValueEncoder {
	return documentEncoder{}
}

func (a *application) documentDecoder(t reflect.Type, _ bson.ValueDecoder) bson.ValueDecoder {
	switch {
	case canBeUUID(t):
		return documentDecoder{newUUIDCodec(a.conversion, t)}
	case nullFieldsOf(t) != nil:
		return documentDecoder{newNullUUIDCodec(t)}
	}
	return documentDecoder{}
}

// pointerTypes returns the pointers to the registered types. These have text methods, and so do pointers to them: a hook of
// the caller for [encoding.TextMarshaler] would take the pointers, but not the values, which have type codecs.
func (a *application) pointerTypes() (pointers []reflect.Type) {
	for _, t := range slices.Concat(a.types, a.nulls, a.documents, slices.Collect(maps.Keys(a.funcs))) {
		pointers = append(pointers, reflect.PointerTo(t))
	}
	return pointers
}

func pointerEncoder(reflect.Type, bson.ValueEncoder) bson.ValueEncoder { return pointerCodec{} }

func pointerDecoder(reflect.Type, bson.ValueDecoder) bson.ValueDecoder { return pointerCodec{} }

func (a *application) uuidEncoder(t reflect.Type, _ bson.ValueEncoder) bson.ValueEncoder {
	return a.uuids[t]
}

func (a *application) uuidDecoder(t reflect.Type, _ bson.ValueDecoder) bson.ValueDecoder {
	return a.uuids[t]
}

func (a *application) funcEncoder(t reflect.Type, _ bson.ValueEncoder) bson.ValueEncoder {
	return a.funcs[t]
}

func (a *application) funcDecoder(t reflect.Type, _ bson.ValueDecoder) bson.ValueDecoder {
	return a.funcs[t]
}

// sliceTypes returns the slices of UUIDs. For those of structs, the driver's codec of slices calls that of each element.
func (a *application) sliceTypes() (types []reflect.Type) {
	for _, t := range a.types {
		if t.Kind() == reflect.Array {
			types = append(types, reflect.SliceOf(t))
		}
	}
	return types
}

func (a *application) sliceEncoder(t reflect.Type, own bson.ValueEncoder) bson.ValueEncoder {
	return &sliceEncoder{conversion: a.conversion, t: t, elem: a.uuids[t.Elem()], driver: own, raw: driver.Encoder(tRawValue)}
}

func (a *application) sliceDecoder(t reflect.Type, own bson.ValueDecoder) bson.ValueDecoder {
	return &sliceDecoder{conversion: a.conversion, t: t, elem: a.uuids[t.Elem()], driver: own, raw: driver.Decoder(tRawValue)}
}

func (a *application) mapEncoder(_ reflect.Type, own bson.ValueEncoder) bson.ValueEncoder {
	a.maps.encoder = own
	return a.maps
}

func (a *application) mapDecoder(_ reflect.Type, own bson.ValueDecoder) bson.ValueDecoder {
	a.maps.decoder = own
	return a.maps
}

func (a *application) anySliceDecoder(_ reflect.Type, own bson.ValueDecoder) bson.ValueDecoder {
	return &anySliceDecoder{implicit: a.implicit, driver: own}
}

func (a *application) binaryValueDecoder(reflect.Type, bson.ValueDecoder) bson.ValueDecoder {
	if a.conversion.rep == uuidrep.Unspecified || a.keepBinary {
		return nil
	}
	c := &binaryValueDecoder{conversion: a.conversion, own: a.uuids[a.implicit], byFunc: a.funcs[a.implicit], other: tBinary}
	if c.byFunc != nil {
		c.own = c.byFunc.uuid
	}
	if other, err := a.reg.LookupTypeMapEntry(bson.TypeBinary); err == nil {
		c.other = other
	}
	return c
}

func (a *application) structPlanEncoder(t reflect.Type, own bson.ValueEncoder) bson.ValueEncoder {
	if e, ok := own.(*structEncoder); !ok || !driver.HasDefaultSettings(e.plain, t) {
		return nil
	}
	return a.plans
}

func (a *application) structPlanDecoder(t reflect.Type, own bson.ValueDecoder) bson.ValueDecoder {
	if d, ok := own.(*structDecoder); !ok || !driver.HasDefaultSettings(d.plain, t) {
		return nil
	}
	return a.plans
}

func (a *application) planEncoder(_ reflect.Type, own bson.ValueEncoder) bson.ValueEncoder {
	return a.plans.DocumentEncoder(own)
}

func (a *application) planDecoder(_ reflect.Type, own bson.ValueDecoder) bson.ValueDecoder {
	return a.plans.DocumentDecoder(own)
}

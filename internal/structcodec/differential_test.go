package structcodec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	differentialCases  = flag.Int("cases", 20_000, "the number of cases of TestDifferential")
	differentialValues = flag.Int("values", 10, "the number of cases of TestDifferential for each type")
	differentialTime   = flag.Duration("for", 0, "how long TestDifferential runs at most")
	stacks             = flag.Bool("stacks", false, "print the stacks of panics")
	differentialSeed   = flag.Uint64("seed", 1, "the seed of TestDifferential")
)

// cases returns the number of cases of TestDifferential, and a quarter of it in a short run.
func cases() int {
	if testing.Short() {
		return *differentialCases / 4
	}
	return *differentialCases
}

// TestDifferential encodes and decodes random types, values and documents with plans and with the driver, and compares
// the bytes, the errors and the targets.
func TestDifferential(t *testing.T) {
	g := &generator{rng: rand.New(rand.NewPCG(*differentialSeed, 0))}
	start := time.Now()
	for g.cases < cases() && (*differentialTime == 0 || time.Since(start) < *differentialTime) {
		g.opts = bsoncodec.Options{}
		if g.rng.IntN(10) == 0 {
			g.opts = randomOptions(g.rng)
		}
		g.compareTypes(t, 40, g.topType)
	}
	g.report(t)
}

// TestDifferentialOptions does what TestDifferential does for structs with each option alone, each pair, and random sets.
func TestDifferentialOptions(t *testing.T) {
	g := &generator{rng: rand.New(rand.NewPCG(*differentialSeed, 1))}
	start := time.Now()
	alone := eachOption()
	sets := slices.Clone(alone)
	for i, a := range alone {
		for _, b := range alone[i+1:] {
			sets = append(sets, union(a, b))
		}
	}
	for range len(sets) / 2 {
		sets = append(sets, randomOptions(g.rng))
	}
	least := max(cases()/len(sets), 1)
	fewest, done, share, slowest := 0, 0, 0.0, bsoncodec.Options{}
	for _, g.opts = range sets {
		before := *g
		for g.cases-before.cases < least && (*differentialTime == 0 || time.Since(start) < *differentialTime) {
			g.compareTypes(t, min(least / *differentialValues / 8 + 1, 40), func() reflect.Type { return g.structType(3) })
		}
		if n := g.cases - before.cases; n >= least {
			if done++; fewest == 0 || n < fewest {
				fewest = n
			}
		}
		// In a small set, one type that the fallback does is more than a twentieth.
		if n := g.counted - before.counted; n > 1000 && g.cases-before.cases >= 10_000 {
			if s := float64(g.fallbacks-before.fallbacks) / float64(n); s > share {
				share, slowest = s, g.opts
			}
		}
	}
	g.report(t)
	t.Logf("%d options alone, %d pairs and %d random sets: %d of these sets with at least %d cases each; the fallback did at most %.1f %%, with %v",
		len(alone), len(alone)*(len(alone)-1)/2, len(sets)-len(alone)*(len(alone)+1)/2, done, fewest, 100*share, optionNames(slowest))
	if share > 0.05 {
		t.Errorf("the fallback did %.1f %% of the comparisons with %v", 100*share, optionNames(slowest))
	}
}

// TestDifferentialClients does what TestDifferential does for clients with different options that share one registry with
// plans. The registries without plans are new for each client and type.
func TestDifferentialClients(t *testing.T) {
	g := &generator{rng: rand.New(rand.NewPCG(*differentialSeed, 2))}
	start := time.Now()
	for g.cases < cases()/4 && (*differentialTime == 0 || time.Since(start) < *differentialTime) {
		register := g.callers()
		clients := []bsoncodec.Options{{}, randomOptions(g.rng), randomOptions(g.rng), randomOptions(g.rng)}
		newDriver, plans := newUUIDRegistries(t, g.rng, register)
		for range 10 {
			typ := g.topType()
			for _, i := range g.rng.Perm(len(clients)) {
				g.opts = clients[i]
				g.compareType(t, newDriver(), plans, typ)
			}
		}
	}
	g.report(t)
}

// compareTypes compares random values of n types with new registries.
func (g *generator) compareTypes(t *testing.T, n int, typ func() reflect.Type) {
	register := g.callers()
	driver, plans := registries(register)
	if g.counting = g.rng.IntN(2) == 0; !g.counting {
		driver, plans = uuidRegistries(t, g.rng, register)
	}
	for range n {
		g.compareType(t, driver, plans, typ())
	}
}

// compareType compares random values of one type.
func (g *generator) compareType(t *testing.T, driver, plans *bson.Registry, typ reflect.Type) {
	g.types++
	for range *differentialValues {
		g.cases++
		if err := g.compare(driver, plans, typ); err != nil {
			t.Errorf("case %d: %v: %v\n%v", g.cases, optionNames(g.opts), typ, err)
			if g.failures++; g.failures > 5 {
				t.FailNow()
			}
		}
	}
}

// report logs what was compared. The fallback does what no plan can do, and documents that are malformed; few comparisons
// may be of anything else.
func (g *generator) report(t *testing.T) {
	t.Logf("%d cases of %d types, %d comparisons: %d of equal errors, %d of malformed documents; "+
		"of %d others the fallback did %d, and a part of %d",
		g.cases, g.types, g.comparisons, g.errors, g.malformed, g.counted, g.fallbacks, g.partly)
	if g.cases > 1000 && g.fallbacks > g.counted/20 {
		t.Errorf("the fallback did %d of %d comparisons", g.fallbacks, g.counted)
	}
}

// forOneElement reports whether a plan has the fallback decode one element of a document.
func forOneElement() bool {
	callers := make([]uintptr, 16)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, ".decodeElement") {
			return true
		}
		if !more {
			return false
		}
	}
}

// The calls of the fallbacks, and whether one was for a value of the type of the document.
var (
	fallbackCalls int
	fallbackTop   bool
	topOfCase     reflect.Type
)

type (
	countingEncoder struct{ bson.ValueEncoder }
	countingDecoder struct{ bson.ValueDecoder }
)

func (c countingEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	fallbackCalls++
	fallbackTop = fallbackTop || v.IsValid() && v.Type() == topOfCase
	return c.ValueEncoder.EncodeValue(ec, vw, v)
}

func (c countingDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	fallbackCalls++
	fallbackTop = fallbackTop || v.IsValid() && v.Type() == topOfCase && !forOneElement()
	return c.ValueDecoder.DecodeValue(dc, vr, v)
}

// uuidRegistries returns two registries with codecs for UUIDs in a random representation, one without plans.
func uuidRegistries(t *testing.T, rng *rand.Rand, register func(*bson.Registry)) (driver, plans *bson.Registry) {
	newDriver, plans := newUUIDRegistries(t, rng, register)
	return newDriver(), plans
}

var errNotFunc = errors.New("not a funcUUID")

// newUUIDRegistries returns what makes the first registry of uuidRegistries, and the second one.
func newUUIDRegistries(t *testing.T, rng *rand.Rand, register func(*bson.Registry)) (newDriver func() *bson.Registry, plans *bson.Registry) {
	build := func(seed uint64, withPlans bool) *bson.Registry {
		rng := rand.New(rand.NewPCG(seed, 2))
		rep := uuidrep.Representation(rng.IntN(5))
		b := bsoncodec.NewRegistryBuilder(rep).RegisterUUIDType(reflect.TypeFor[namedUUID]())
		switch rng.IntN(4) {
		case 0: // refused
		case 1:
			b.RegisterDocumentType(reflect.TypeFor[lostUUID]()).RegisterDocumentType(reflect.TypeFor[privateUUID]()).RegisterDocumentType(reflect.TypeFor[maybeUUID]())
		default:
			b.RegisterUUIDType(reflect.TypeFor[privateUUID]()).RegisterNullUUIDType(reflect.TypeFor[maybeUUID]())
			bsoncodec.RegisterUUIDFunc(b, func(u funcUUID) (uuid.UUID, bool) { return u.id, u.prefix != "" }, func(id uuid.UUID, ok bool) (funcUUID, error) {
				switch {
				case !ok:
					return funcUUID{}, nil
				case id[0] == 2:
					return funcUUID{}, errNotFunc
				}
				return funcUUID{"x", id}, nil
			})
			if rng.IntN(8) == 0 {
				b.SetImplicitType(reflect.TypeFor[funcUUID]())
			}
		}
		if rep > uuidrep.Standard && rng.IntN(2) == 0 {
			b.AlsoDecode(uuidrep.Standard)
		}
		if rep != uuidrep.Unspecified && rng.IntN(2) == 0 {
			b.AlsoDecodeSubtype0().AlsoDecodeString()
		}
		switch rng.IntN(4) {
		case 0:
			b.UnregisteredAsUUID()
		case 1:
			b.UnregisteredAsBytes()
		}
		switch rng.IntN(8) {
		case 0, 1:
			b.SetImplicitType(reflect.TypeFor[namedUUID]())
		case 2:
			b.SetImplicitType(reflect.TypeFor[uuid.UUID]()).KeepBinary()
		case 3:
			b.RegisterBytesType(reflect.TypeFor[[16]byte]())
		}
		if rng.IntN(6) == 0 {
			b.EncodeAsString()
		}
		if rng.IntN(6) == 0 {
			b.EncodeZeroAsNull()
		}
		if !withPlans {
			b.WithoutPlans()
		}
		reg, err := b.With(register).Build()
		if err != nil {
			t.Fatal(err)
		}
		return reg
	}
	seed := rng.Uint64()
	return func() *bson.Registry { return build(seed, false) }, build(seed, true)
}

// registries returns a registry of the driver's codecs and one with plans, both with what register registers.
func registries(register func(*bson.Registry)) (driver, plans *bson.Registry) {
	driver, plans = bson.NewRegistry(), bson.NewRegistry()
	register(driver)
	register(plans)
	registerContextOf(plans)
	// The registry keeps what it looks up, so the look-ups are of types that are not used otherwise.
	type none struct{}
	enc, _ := plans.LookupEncoder(reflect.TypeFor[none]())
	dec, _ := plans.LookupDecoder(reflect.TypeFor[none]())
	c := structcodec.New(plans, countingEncoder{enc}, countingDecoder{dec}, bsoncodec.ErrNotPlain)
	(&built.Note{Plans: c}).AddTo(plans)
	plans.RegisterKindEncoder(reflect.Struct, c)
	plans.RegisterKindDecoder(reflect.Struct, c)
	d, _ := plans.LookupDecoder(reflect.TypeFor[bson.D]())
	plans.RegisterTypeDecoder(reflect.TypeFor[bson.D](), c.DocumentDecoder(d))
	m, _ := plans.LookupDecoder(reflect.TypeFor[map[string]none]())
	plans.RegisterKindDecoder(reflect.Map, c.DocumentDecoder(m))
	sEncoder, _ := plans.LookupEncoder(reflect.TypeFor[[]none]())
	plans.RegisterKindEncoder(reflect.Slice, c.DocumentEncoder(sEncoder))
	mEncoder, _ := plans.LookupEncoder(reflect.TypeFor[map[string]none]())
	plans.RegisterKindEncoder(reflect.Map, c.DocumentEncoder(mEncoder))
	return driver, plans
}

// The options of a client, by the names of the fields of bsoncodec.Options.
var (
	encoderOptions = map[string]func(*bson.Encoder){
		"UseJSONStructTags": (*bson.Encoder).UseJSONStructTags, "ErrorOnInlineDuplicates": (*bson.Encoder).ErrorOnInlineDuplicates,
		"IntMinSize": (*bson.Encoder).IntMinSize, "NilMapAsEmpty": (*bson.Encoder).NilMapAsEmpty,
		"NilSliceAsEmpty": (*bson.Encoder).NilSliceAsEmpty, "NilByteSliceAsEmpty": (*bson.Encoder).NilByteSliceAsEmpty,
		"OmitZeroStruct": (*bson.Encoder).OmitZeroStruct, "OmitEmpty": (*bson.Encoder).OmitEmpty,
		"StringifyMapKeysWithFmt": (*bson.Encoder).StringifyMapKeysWithFmt,
	}
	decoderOptions = map[string]func(*bson.Decoder){
		"AllowTruncatingDoubles": (*bson.Decoder).AllowTruncatingDoubles, "BinaryAsSlice": (*bson.Decoder).BinaryAsSlice,
		"DefaultDocumentM": (*bson.Decoder).DefaultDocumentM, "DefaultDocumentMap": (*bson.Decoder).DefaultDocumentMap,
		"ObjectIDAsHexString": (*bson.Decoder).ObjectIDAsHexString, "UseJSONStructTags": (*bson.Decoder).UseJSONStructTags,
		"UseLocalTimeZone": (*bson.Decoder).UseLocalTimeZone, "ZeroMaps": (*bson.Decoder).ZeroMaps, "ZeroStructs": (*bson.Decoder).ZeroStructs,
	}
)

// eachOption returns Options with each option alone.
func eachOption() (all []bsoncodec.Options) {
	for i := range reflect.TypeFor[bsoncodec.Options]().NumField() {
		var o bsoncodec.Options
		if f := reflect.ValueOf(&o).Elem().Field(i); f.Kind() == reflect.Bool {
			f.SetBool(true)
			all = append(all, o)
		}
	}
	return all
}

// optionNames returns the names of the options that o has.
func optionNames(o bsoncodec.Options) (names []string) {
	v := reflect.ValueOf(o)
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Bool && v.Field(i).Bool() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

func union(a, b bsoncodec.Options) bsoncodec.Options {
	v := reflect.ValueOf(&a).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Bool && reflect.ValueOf(b).Field(i).Bool() {
			f.SetBool(true)
		}
	}
	return a
}

func randomOptions(rng *rand.Rand) (o bsoncodec.Options) {
	all := eachOption()
	for range 1 + rng.IntN(6) {
		o = union(o, all[rng.IntN(len(all))])
	}
	return o
}

// setters returns what sets the options of g.
func (g *generator) setters() (func(*bson.Encoder), func(*bson.Decoder)) {
	var encs []func(*bson.Encoder)
	var decs []func(*bson.Decoder)
	v := reflect.ValueOf(g.opts)
	for _, name := range []string{
		"UseJSONStructTags", "ErrorOnInlineDuplicates", "IntMinSize", "NilMapAsEmpty", "NilSliceAsEmpty", "NilByteSliceAsEmpty", "OmitZeroStruct",
		"OmitEmpty", "StringifyMapKeysWithFmt", "AllowTruncatingDoubles", "BinaryAsSlice", "DefaultDocumentM", "DefaultDocumentMap",
		"ObjectIDAsHexString", "UseLocalTimeZone", "ZeroMaps", "ZeroStructs",
	} {
		if v.FieldByName(name).Bool() {
			if set := encoderOptions[name]; set != nil {
				encs = append(encs, set)
			}
			if set := decoderOptions[name]; set != nil {
				decs = append(decs, set)
			}
		}
	}
	return func(enc *bson.Encoder) {
			for _, set := range encs {
				set(enc)
			}
		}, func(dec *bson.Decoder) {
			for _, set := range decs {
				set(dec)
			}
		}
}

func (g *generator) compare(driver, plans *bson.Registry, typ reflect.Type) error {
	value := g.value(typ, 4)
	encOption, decOption := g.setters()

	arg := value.Interface()
	if g.rng.IntN(2) == 0 {
		arg = value.Addr().Interface()
	}
	g.comparisons++
	hooks = 0
	want, wantErr := encode(driver, arg, encOption)
	wantHooks := hooks
	hooks = 0
	fallbackCalls, fallbackTop, topOfCase = 0, false, typ
	got, gotErr := encode(plans, arg, encOption)
	g.countFallback(wantErr == nil && !brokenHooks && !g.broken)
	if wantErr == nil && !brokenHooks && !g.broken {
		if err := g.compareReasons(plans, typ, true); err != nil {
			return err
		}
	}
	// For a key that cannot be written, the driver stops before the hooks of the value, or after.
	// So do plans before the hooks of a struct whose inline map has the key of a field.
	badKey := wantErr != nil && (strings.Contains(wantErr.Error(), "null bytes") || strings.Contains(wantErr.Error(), "of inlined map"))
	if hooks != wantHooks && !brokenHooks && !g.broken && !badKey {
		return fmt.Errorf("encode %+v: %d calls of hooks, want %d", arg, hooks, wantHooks)
	}
	broken := brokenHooks || g.broken
	brokenHooks, g.broken = false, false
	if !sameError(wantErr, gotErr) && !(badKey && isPanic(gotErr)) && !missedAgain(wantErr, gotErr) {
		return fmt.Errorf("encode %+v\n got %v\nwant %v", arg, gotErr, wantErr)
	}
	if !bytes.Equal(want, got) && !sameDocument(want, got) {
		return fmt.Errorf("encode %+v\n got %x\nwant %x", arg, got, want)
	}
	if wantErr != nil {
		g.errors++
	}
	if err := g.compareMarshal(driver, plans, arg, broken || badKey); err != nil {
		return err
	}

	if err := g.compareValues(driver, plans, arg, broken || badKey); err != nil {
		return err
	}

	doc := want
	if wantErr != nil || g.rng.IntN(2) == 0 {
		doc = g.document(typ, 3)
	}
	mutated := broken || g.broken || brokenHooks
	switch g.rng.IntN(8) {
	case 0, 1:
		doc, mutated = g.mutate(doc), true
	case 2:
		doc = g.shuffle(doc)
	}
	if !valid(doc) {
		doc = withoutNegative(doc)
	}
	seed := g.rng.Uint64()
	prefilled := g.rng.IntN(3) == 0
	target := func() reflect.Value {
		if !prefilled {
			return reflect.New(typ).Elem()
		}
		return (&generator{rng: rand.New(rand.NewPCG(seed, 1)), plain: true}).value(typ, 3)
	}
	direct := typ.Kind() == reflect.Map && g.rng.IntN(3) == 0
	argument := func(v reflect.Value) any {
		if direct && !v.IsNil() {
			return v.Interface()
		}
		return v.Addr().Interface()
	}
	memory := func(reg *bson.Registry, doc []byte, v any, _ func(*bson.Decoder)) (err error) {
		defer caught(&err)
		return bsoncodec.Unmarshal(reg, doc, v, g.opts)
	}
	decoders := []func(*bson.Registry, []byte, any, func(*bson.Decoder)) error{decodeStream, memory}
	if !valid(doc) && (strconv.IntSize == 32 || g.rng.IntN(16) != 0) {
		decoders = decoders[1:] // the driver allocates what the lengths in a stream say
	}
	for _, decode := range decoders {
		g.comparisons++
		wantValue, gotValue := target(), target()
		hooks = 0
		wantErr := decode(driver, doc, argument(wantValue), decOption)
		wantHooks := hooks
		hooks = 0
		fallbackCalls, fallbackTop = 0, false
		gotErr := decode(plans, doc, argument(gotValue), decOption)
		if !valid(doc) {
			g.malformed++
		} else {
			g.countFallback(wantErr == nil)
			if wantErr == nil && !mutated && !prefilled { // an interface in a target can hold another value of the type
				if err := g.compareReasons(plans, typ, false); err != nil {
					return fmt.Errorf("decode %x: %w", doc, err)
				}
			}
		}
		if readsOn(doc, wantErr, gotErr) || missedAgain(wantErr, gotErr) || allocates(doc, wantErr, gotErr) ||
			endsWithin(wantErr, gotErr) {
			continue
		}
		if !sameError(wantErr, gotErr) {
			return fmt.Errorf("decode %x\n got %v\nwant %v", doc, gotErr, wantErr)
		}
		if hooks != wantHooks {
			return fmt.Errorf("decode %x: %d calls of hooks, want %d", doc, hooks, wantHooks)
		}
		if !same(wantValue, gotValue) {
			return fmt.Errorf("decode %x\n got %s\nwant %s\nerror %v", doc, dump(gotValue), dump(wantValue), gotErr)
		}
		if want, got := sharing(wantValue, doc), sharing(gotValue, doc); want != got {
			return fmt.Errorf("decode %x: %s shares memory: %q, want %q", doc, dump(gotValue), got, want)
		}
		if wantErr != nil {
			g.errors++
		}
	}
	return nil
}

// readsOn reports whether two errors are of a driver that reads on in a stream after a malformed document, and of plans,
// which do not. The driver's codec of pointers panics when it misses a decoder for the second time, and it may have missed
// it before where it read on.
func readsOn(doc []byte, wantErr, gotErr error) bool {
	if gotErr == nil {
		return false
	}
	if wantErr != nil && strings.HasSuffix(wantErr.Error(), "interface is nil, not bson.ValueDecoder") {
		return strings.Contains(gotErr.Error(), "no decoder found for ") || !valid(doc)
	}
	stated := statedLength(doc)
	return stated < len(doc) && (wantErr != nil || stated >= 0 && !valid(doc[:stated]))
}

// allocates reports whether a length is so far beyond the end of doc that plans do not leave it to the driver's reader of
// streams, which allocates it. There are errors then, and they can differ.
func allocates(doc []byte, wantErr, gotErr error) bool {
	_, beyond := driver.Skips(bson.TypeEmbeddedDocument, doc)
	return beyond > driver.MaxBeyond && (wantErr == nil) == (gotErr == nil) && gotErr != io.EOF
}

// endsWithin reports whether the driver says of a malformed document that the stream ends between two documents, and plans
// that it ends within one. Only a document that ends too early has either error; the driver's check of a document passes
// over some of them, such as an array that lacks its last byte.
func endsWithin(wantErr, gotErr error) bool {
	return errors.Is(wantErr, io.EOF) && errors.Is(gotErr, io.ErrUnexpectedEOF)
}

// missedAgain reports whether one error is that of a registry that misses a codec for the first time, and the other one
// that of a registry that misses it again: the driver's codec of pointers keeps the codec that it does not find, and panics
// then. A map whose order decides what is encoded before the error, or another client, can have met the type before.
func missedAgain(wantErr, gotErr error) bool {
	first := func(err error) bool {
		return strings.Contains(err.Error(), "no encoder found for ") || strings.Contains(err.Error(), "no decoder found for ")
	}
	again := func(err error) bool {
		return isPanic(err) && strings.Contains(err.Error(), "interface is nil, not bson.Value")
	}
	return wantErr != nil && gotErr != nil && (first(wantErr) && again(gotErr) || again(wantErr) && first(gotErr))
}

// compareMarshal compares what Marshal returns. If broken is true, hooks can be called once more.
func (g *generator) compareMarshal(driver, plans *bson.Registry, arg any, broken bool) error {
	g.comparisons++
	hooks = 0
	want, wantErr := marshal(driver, arg, g.opts)
	wantHooks := hooks
	hooks = 0
	got, gotErr := marshal(plans, arg, g.opts)
	switch {
	case hooks != wantHooks && !broken:
		return fmt.Errorf("marshal %+v: %d calls of hooks, want %d", arg, hooks, wantHooks)
	case !sameError(wantErr, gotErr) && !(broken && isPanic(gotErr)) && !missedAgain(wantErr, gotErr):
		return fmt.Errorf("marshal %+v\n got %v\nwant %v", arg, gotErr, wantErr)
	case !bytes.Equal(want, got) && !sameDocument(want, got):
		return fmt.Errorf("marshal %+v\n got %x\nwant %x", arg, got, want)
	}
	brokenHooks = false
	if wantErr != nil {
		g.errors++
	}
	return nil
}

// compareValues compares what MarshalValue and UnmarshalValue do with arg.
func (g *generator) compareValues(driver, plans *bson.Registry, arg any, broken bool) error {
	g.comparisons++
	encodeValue := func(reg *bson.Registry) (rv bson.RawValue, err error) {
		defer caught(&err)
		return bsoncodec.MarshalValue(reg, arg, g.opts)
	}
	want, wantErr := encodeValue(driver)
	got, gotErr := encodeValue(plans)
	brokenHooks = false
	switch {
	case wantErr != nil && strings.Contains(wantErr.Error(), "the registry has no codecs"): // the driver's registry
		return nil
	case !sameError(wantErr, gotErr) && !(broken && isPanic(gotErr)) && !missedAgain(wantErr, gotErr):
		return fmt.Errorf("marshal the value %+v\n got %v\nwant %v", arg, gotErr, wantErr)
	case want.Type != got.Type || !bytes.Equal(want.Value, got.Value) && !sameDocument(want.Value, got.Value):
		return fmt.Errorf("marshal the value %+v\n got %v %x\nwant %v %x", arg, got.Type, got.Value, want.Type, want.Value)
	case wantErr != nil || reflect.TypeOf(arg) == nil:
		return nil
	}
	g.comparisons++
	wantValue, gotValue := reflect.New(reflect.TypeOf(arg)), reflect.New(reflect.TypeOf(arg))
	decodeValue := func(reg *bson.Registry, v reflect.Value) (err error) {
		defer caught(&err)
		return bsoncodec.UnmarshalValue(reg, want, v.Interface(), g.opts)
	}
	wantErr, gotErr = decodeValue(driver, wantValue), decodeValue(plans, gotValue)
	if missedAgain(wantErr, gotErr) {
		return nil
	}
	if !sameError(wantErr, gotErr) && !readsOn(want.Value, wantErr, gotErr) || !same(wantValue, gotValue) && wantErr == nil {
		return fmt.Errorf("unmarshal the value %v %x\n got %s and %v\nwant %s and %v", want.Type, want.Value, dump(gotValue), gotErr, dump(wantValue), wantErr)
	}
	if want, got := sharing(wantValue, want.Value), sharing(gotValue, want.Value); want != got {
		return fmt.Errorf("unmarshal the value: %s shares memory: %q, want %q", dump(gotValue), got, want)
	}
	return nil
}

func marshal(reg *bson.Registry, v any, opts ...bsoncodec.Options) (doc []byte, err error) {
	defer caught(&err)
	before := hooks
	doc, err = bsoncodec.Marshal(reg, v, opts...)
	var e *bsoncodec.UnregisteredTypeError
	if errors.As(err, &e) && strings.Contains(err.Error(), "the registry has no codecs") { // the driver's registry
		hooks = before
		option := func(*bson.Encoder) {}
		if len(opts) > 0 {
			option, _ = (&generator{opts: opts[0]}).setters()
		}
		return encode(reg, v, option)
	}
	return doc, err
}

// countFallback counts a comparison for which the fallback was called, if counts says that only the type can be the
// reason.
func (g *generator) countFallback(counts bool) {
	switch {
	case !g.counting || !counts:
		return
	case fallbackTop:
		g.fallbacks++
	case fallbackCalls > 0:
		g.partly++
	}
	g.counted++
}

// compareReasons compares whether the fallback was called for all of a struct with the reasons for that.
func (g *generator) compareReasons(plans *bson.Registry, typ reflect.Type, encoding bool) error {
	if !g.counting || typ.Kind() != reflect.Struct {
		return nil
	}
	enc, err := plans.LookupEncoder(reflect.TypeFor[struct{ contextOf }]())
	if err != nil {
		return err
	}
	c, ok := enc.(*structcodec.Codec)
	if !ok {
		return fmt.Errorf("the encoder of structs is a %T", enc)
	}
	if own, err := plans.LookupEncoder(typ); err != nil || own != enc {
		return nil // a codec of a caller
	}
	var at contextOf
	encOption, decOption := g.setters()
	var found []structcodec.Reason
	if encoding {
		_, _ = encode(plans, &at, encOption)
		found = c.WhyNotEncoded(at.ec, typ)
	} else {
		_ = decodeStream(plans, []byte{5, 0, 0, 0, 0}, &at, decOption)
		found = c.WhyNotDecoded(at.dc, typ)
	}
	if whole := slices.ContainsFunc(found, func(r structcodec.Reason) bool { return r.Path == "" }); whole != fallbackTop {
		return fmt.Errorf("the fallback was called for all: %v, and the reasons are %v", fallbackTop, found)
	}
	return nil
}

// contextOf is a type whose codecs keep the contexts that they are called with.
type contextOf struct {
	ec bson.EncodeContext
	dc bson.DecodeContext
}

func registerContextOf(reg *bson.Registry) {
	t := reflect.TypeFor[contextOf]()
	reg.RegisterTypeEncoder(t, bson.ValueEncoderFunc(func(ec bson.EncodeContext, _ bson.ValueWriter, v reflect.Value) error {
		v.Addr().Interface().(*contextOf).ec = ec
		return errors.New("kept")
	}))
	reg.RegisterTypeDecoder(t, bson.ValueDecoderFunc(func(dc bson.DecodeContext, _ bson.ValueReader, v reflect.Value) error {
		v.Addr().Interface().(*contextOf).dc = dc
		return errors.New("kept")
	}))
}

// caught sets err to what f panicked with. The driver panics for some values and targets, and so must plans.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v", r)
		if *stacks {
			debug.PrintStack()
		}
	}
}

// isPanic reports whether err was made by caught.
func isPanic(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "panic: ") }

func encode(reg *bson.Registry, v any, option func(*bson.Encoder)) (doc []byte, err error) {
	defer caught(&err)
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	option(enc)
	err = enc.Encode(v)
	return buf.Bytes(), err
}

func decodeStream(reg *bson.Registry, doc []byte, v any, option func(*bson.Decoder)) (err error) {
	defer caught(&err)
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
	dec.SetRegistry(reg)
	option(dec)
	return dec.Decode(v)
}

// decodeMemory decodes by Unmarshal, which has no stream.
func decodeMemory(reg *bson.Registry, doc []byte, v any, _ func(*bson.Decoder)) (err error) {
	defer caught(&err)
	return bsoncodec.Unmarshal(reg, doc, v)
}

// withoutNegative returns doc without bytes that could make a length negative. The driver does not come back from
// skipping a value of negative length.
func withoutNegative(doc []byte) []byte {
	doc = bytes.Clone(doc)
	for i := range doc {
		doc[i] &= 0x7f
	}
	return doc
}

// statedLength returns the length of doc by its first bytes.
func statedLength(doc []byte) int {
	if len(doc) < 4 {
		return -1
	}
	return int(int32(binary.LittleEndian.Uint32(doc)))
}

// valid reports whether doc is well-formed BSON. Version 2.7.0 of the driver panics on some documents that are not, and
// version 2.10.0 takes some lengths within arrays and documents for valid that are negative, or beyond the end.
func valid(doc []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	back, beyond := driver.Skips(bson.TypeEmbeddedDocument, doc)
	return !back && beyond == 0 && bson.Raw(doc).Validate() == nil
}

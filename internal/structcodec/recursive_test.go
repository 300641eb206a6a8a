package structcodec_test

import (
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/structcodec"
)

// holdsItself has fields whose types hold themselves without a struct in between.
type holdsItself struct {
	List      list
	Directory directory
	Nested    nested
	Endless   endless
	Any       any
}

// TestTypesThatHoldThemselves compiles such types, which must come to an end, and compares with the driver.
func TestTypesThatHoldThemselves(t *testing.T) {
	driver, plans := registries(registerCallers)
	inner := nested{{"a": {nil}}}
	for _, v := range []holdsItself{
		{},
		{
			List:      list{nil, {}, {{}, nil}},
			Directory: directory{"a": {"b": {"c": nil}}},
			Nested:    nested{nil, {"x": {&inner}}},
			Any:       list{{}, {nil}},
		},
	} {
		want, err := encode(driver, v, func(*bson.Encoder) {})
		if err != nil {
			t.Fatal(err)
		}
		got, err := encode(plans, &v, func(*bson.Encoder) {})
		if err != nil || string(got) != string(want) {
			t.Errorf("encode %+v: %x, %v; the driver writes %x", v, got, err, want)
		}
		var fromDriver, fromPlans holdsItself
		if err := decodeStream(driver, want, &fromDriver, func(*bson.Decoder) {}); err != nil {
			t.Fatal(err)
		}
		if err := decodeStream(plans, want, &fromPlans, func(*bson.Decoder) {}); err != nil {
			t.Fatal(err)
		}
		if !same(reflect.ValueOf(fromPlans), reflect.ValueOf(fromDriver)) {
			t.Errorf("decode %x: %+v, the driver reads %+v", want, fromPlans, fromDriver)
		}
	}
}

// TestMinSizeOfValueCodec encodes with the tag minsize a type whose encoder takes part in plans. AppendValue does not
// learn the option, so EncodeValue must encode the value.
func TestMinSizeOfValueCodec(t *testing.T) {
	driver, plans := registries(registerCallers)
	v := struct {
		A sizedOctets
		B sizedOctets  `bson:",minsize"`
		C *sizedOctets `bson:",minsize"`
	}{A: 1, B: 2, C: new(sizedOctets)}
	want, err := encode(driver, v, func(*bson.Encoder) {})
	if err != nil {
		t.Fatal(err)
	}
	got, err := encode(plans, v, func(*bson.Encoder) {})
	if err != nil || string(got) != string(want) {
		t.Errorf("got %v, %v; the driver writes %v", bson.Raw(got), err, bson.Raw(want))
	}
}

// Plans do all the work for such types.
func TestTypesThatHoldThemselvesHavePlans(t *testing.T) {
	_, plans := registries(registerCallers)
	typ := reflect.TypeFor[holdsItself]()
	enc, err := plans.LookupEncoder(typ)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := enc.(*structcodec.Codec)
	if !ok {
		t.Fatalf("the encoder of structs is a %T", enc)
	}
	if got := c.WhyNotEncoded(bson.EncodeContext{Registry: plans}, typ); len(got) > 0 {
		t.Errorf("not encoded by plans: %v", got)
	}
	if got := c.WhyNotDecoded(bson.DecodeContext{Registry: plans}, typ); len(got) > 0 {
		t.Errorf("not decoded by plans: %v", got)
	}
}

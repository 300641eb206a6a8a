package structcodec_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Plans are compiled by whoever comes first, and used by all.
func TestConcurrentFirstUse(t *testing.T) {
	_, plans := registries(registerCallers)
	value := tree{Value: 1, Left: &tree{Value: 2}, ByName: map[string]*tree{"a": {Value: 3}}, Children: []tree{{Value: 4}}}
	want, err := bson.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 50 {
				got, err := encode(plans, value, func(*bson.Encoder) {})
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("got %X and error %v, want %X", got, err, want)
				}
				var back tree
				if err := decodeStream(plans, got, &back, func(*bson.Decoder) {}); err != nil || back.Left.Value != 2 {
					t.Errorf("got %+v, %v", back, err)
				}
				for _, typ := range corpus[:4] {
					v := reflect.New(typ)
					if err := decodeStream(plans, want, v.Interface(), func(*bson.Decoder) {}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
}

// The first uses of many types in many contexts at once have the results of the driver.
func TestConcurrentFirstUseOfOptions(t *testing.T) {
	g := &generator{rng: rand.New(rand.NewPCG(5, 5))}
	sets := append(eachOption(), bsoncodec.Options{}, randomOptions(g.rng), randomOptions(g.rng))
	value := &tree{Value: 1, Left: &tree{Value: 2}, ByName: map[string]*tree{"a": {Value: 3}}, Children: []tree{{Value: 4}}}
	driver := build(t, true)
	plans := build(t, false)
	want := make([][]byte, len(sets))
	for i, o := range sets {
		want[i], _ = marshal(driver, value, o)
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for n := range sets {
				i := (n + worker) % len(sets)
				got, err := marshal(plans, value, sets[i])
				if !bytes.Equal(got, want[i]) && !sameDocument(got, want[i]) {
					t.Errorf("%+v: got %x and %v, want %x", sets[i], got, err, want[i])
				}
				var a, b tree
				wantErr, gotErr := bsoncodec.Unmarshal(driver, want[i], &a, sets[i]), bsoncodec.Unmarshal(plans, want[i], &b, sets[i])
				if !sameError(wantErr, gotErr) || !same(reflect.ValueOf(a), reflect.ValueOf(b)) {
					t.Errorf("%+v: got %+v and %v, want %+v and %v", sets[i], b, gotErr, a, wantErr)
				}
			}
		})
	}
	wg.Wait()
}

func build(t *testing.T, withoutPlans bool) *bson.Registry {
	t.Helper()
	b := bsoncodec.NewRegistryBuilder(uuidrep.Standard)
	if withoutPlans {
		b.WithoutPlans()
	}
	reg, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

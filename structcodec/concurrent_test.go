package structcodec_test

import (
	"bytes"
	"reflect"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
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

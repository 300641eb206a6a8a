package record

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A collection is the copy of a run if the run has its UUID, if the server reports none, or if a cutover that was rolled back has
// changed it. One whose UUID the record lacks is another program's.
func TestMade(t *testing.T) {
	id := func(b byte) *bson.Binary { return &bson.Binary{Subtype: 4, Data: append(make([]byte, 15), b)} }
	rolledBack := []*Cutover{{Saved: Saved{State: RolledBack}, Collections: []Exchange{{Run: "a/1", NewID: id(3)}}}}
	for _, tt := range []struct {
		run, is *bson.Binary
		want    bool
	}{{id(1), id(1), true}, {id(1), id(2), false}, {nil, id(1), false}, {id(1), nil, true}, {nil, nil, true}, {id(1), id(3), true}, {nil, id(3), true}} {
		if got := (&Run{ID: "a/1", IntoUUID: tt.run}).Made(tt.is, rolledBack); got != tt.want {
			t.Errorf("%v, %v: %v", tt.run, tt.is, got)
		}
	}
}

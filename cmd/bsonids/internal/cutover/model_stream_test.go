package cutover

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// A position is the time of the last event before it.
func position(at uint32) bson.Raw {
	b, _ := bson.Marshal(bson.D{{Key: "t", Value: int64(at)}})
	return b
}

func timeOf(at bson.Raw) uint32 { return uint32(at.Lookup("t").AsInt64()) }

func (w *world) Position(context.Context) (at bson.Raw, why string, err error) {
	w.call(func() { at = position(w.clock) })
	if !w.streams {
		return nil, "there are no change streams", nil
	}
	return at, "", nil
}

func (w *world) Next(_ context.Context, c *record.Cutover) (b changes.Batch, err error) {
	w.call(func() {
		from := timeOf(c.Stream.Token)
		if b = (changes.Batch{IDs: make(map[string][]bson.RawValue), At: c.Stream.Token}); from < w.oldest {
			b.Lost = "the server has forgotten it"
			return
		}
		n := 0
		for _, e := range w.events {
			if e.at <= from || n == 20 {
				continue
			}
			n++
			b.Time, b.At = bson.Timestamp{T: e.at}, position(e.at)
			if e.to != "" && c.State != record.Switching && c.State != record.RollingBack {
				w.t.Error("a collection was renamed before the exchange began")
			}
			if e.id != "" && !strings.Contains(e.name, "_between_") {
				b.IDs[e.name] = append(b.IDs[e.name], idValue(e.id))
			}
		}
	})
	return b, nil
}

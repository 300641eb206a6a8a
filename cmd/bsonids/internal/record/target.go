package record

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// crossing returns the runs that may be in progress and use the same collections as want in another
// role: one of the two reads or changes the collection that the other one makes with --into, or
// both make the same one. Such runs do not compete for the same lock. Each of them therefore looks
// for the other after it has inserted its own document, so that at least one of them finds the
// other.
func crossing(ctx context.Context, coll *mongo.Collection, want *Run) ([]*Run, error) {
	names := bson.A{want.Collection}
	roles := bson.A{}
	if want.Into != "" {
		names = append(names, want.Into)
		roles = append(roles, bson.D{{Key: "collection", Value: want.Into}})
	}
	roles = append(roles, bson.D{{Key: "into", Value: bson.D{{Key: "$in", Value: names}}}})
	runs, err := find[*Run](ctx, coll, bson.D{{Key: "ended", Value: bson.D{{Key: "$exists", Value: false}}}, {Key: "$or", Value: roles}})
	if err != nil {
		return nil, err
	}
	// The lock of the collection keeps apart the runs that convert the same one.
	return slices.DeleteFunc(runs, func(r *Run) bool { return r.Collection == want.Collection }), nil
}

// cross returns an error if one of the runs is in progress. The copy of a run that has ended without
// recording it stays unfinished, which a run that resumes it detects.
func cross(runs []*Run, now time.Time) error {
	for _, r := range runs {
		if !r.expired(now) {
			return refuseFor(r, ErrHeld, WaitOnly, "has not ended, and uses the same collections")
		}
	}
	return nil
}

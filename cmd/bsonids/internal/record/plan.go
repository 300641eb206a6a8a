package record

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Plan is the document of a plan that converts several collections. It tells other machines which
// conversions belong together; it is not a lock.
type Plan struct {
	ID       string     `bson:"_id"`
	Format   int        `bson:"format"`
	Kind     string     `bson:"kind"` // kindPlan
	Digest   string     `bson:"digest"`
	To       string     `bson:"to"`
	StateDir string     `bson:"stateDir"`
	By       Who        `bson:"by"`
	Started  time.Time  `bson:"started"` // of the last run
	Ended    *time.Time `bson:"ended,omitempty"`
	Outcome  string     `bson:"outcome,omitempty"`
	Reason   string     `bson:"reason,omitempty"`
	Steps    []PlanStep `bson:"steps"` // in the order of the work
}

// PlanStep is one conversion of a plan. Conversion is that of its runs.
type PlanStep struct {
	Collection string `bson:"collection"`
	Filter     string `bson:"filter,omitempty"` // in extended JSON
	From       string `bson:"from"`
	To         string `bson:"to"`
	Into       string `bson:"into,omitempty"`
	Conversion string `bson:"conversion"`
	Documents  int64  `bson:"documents"` // about how many there are to read
}

const kindPlan = "plan"

// planID returns the _id of the document of a plan. The state directory is a part of it, because a
// plan may be undone and applied again with another one. No _id of a run ends like this.
func planID(p Plan) string { return "bsonids plan " + p.Digest + " in " + p.StateDir + "/plan" }

// BeginPlan inserts or replaces the document of a plan, and returns its _id.
func BeginPlan(ctx context.Context, db *mongo.Database, p Plan, version string) (string, error) {
	now, err := serverTime(ctx, db)
	if err != nil {
		return "", err
	}
	coll := collection(db)
	if err := elsewhere(ctx, db); err != nil {
		return "", err
	}
	if err := mark(ctx, coll); err != nil {
		return "", err
	}
	p.ID, p.Format, p.Kind, p.By, p.Started = planID(p), format, kindPlan, whoAmI(version), now
	_, err = coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: p.ID}}, p, options.Replace().SetUpsert(true))
	return p.ID, err
}

// EndPlan notes that the command that applies a plan has ended with the error failed, or nil.
func EndPlan(db *mongo.Database, id string, failed error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	end := bson.D{{Key: "outcome", Value: Done}}
	if failed != nil {
		end = bson.D{{Key: "outcome", Value: Stopped}, {Key: "reason", Value: failed.Error()}}
	}
	_, err := collection(db).UpdateOne(ctx, bson.D{{Key: "_id", Value: id}},
		bson.D{{Key: "$set", Value: end}, {Key: "$currentDate", Value: bson.D{{Key: "ended", Value: true}}}})
	return err
}

// Plans returns the plans in the record, sorted by their last start.
func Plans(ctx context.Context, db *mongo.Database) ([]Plan, error) {
	return find[Plan](ctx, collection(db), bson.D{{Key: "kind", Value: kindPlan}}, "started")
}

// Runs returns all runs in the record, without their decisions, sorted by when they began.
func Runs(ctx context.Context, db *mongo.Database) ([]*Run, error) {
	return find[*Run](ctx, collection(db), bson.D{{Key: "kind", Value: bson.D{{Key: "$in", Value: bson.A{Convert, Undo}}}}}, "started", "epoch")
}

// Now returns the time of the server, with which the times in the record can be compared.
func Now(ctx context.Context, db *mongo.Database) (time.Time, error) { return serverTime(ctx, db) }

// Alive reports whether a run that has not ended has shown a sign of life within some seconds.
func (r *Run) Alive(now time.Time) bool { return r.Ended == nil && !r.expired(now.Add(-lease)) }

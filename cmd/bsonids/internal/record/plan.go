package record

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Plan is the document of a migration, which converts several collections by a plan. It tells other machines
// which conversions belong together, and shows that the record and the directory of the migration fit. It is not
// a lock.
type Plan struct {
	ID        string     `bson:"_id"`
	Kind      string     `bson:"kind"`      // kindPlan
	Migration string     `bson:"migration"` // random id, which the directory has
	Epoch     int64      `bson:"epoch"`     // counts the commands that have written
	StateDir  string     `bson:"stateDir"`
	By        Who        `bson:"by"`
	Started   time.Time  `bson:"started"` // of the last run
	Steps     []PlanStep `bson:"steps"`   // in the order of the work
}

// PlanStep is one conversion of a plan. Conversion is that of its runs.
type PlanStep struct {
	kinds.Task `bson:",inline"`
	Conversion string `bson:"conversion"`
	Documents  int64  `bson:"documents"` // about how many there are to read
}

const kindPlan = "plan"

// planID returns the _id of the document of a migration. No _id of a run ends like this.
func planID(migration string) string { return "bsonids migration " + migration + "/plan" }

// ErrOlder is wrapped by the [*Error] of a directory that is an older copy.
var ErrOlder = errors.New("the directory lacks what the record knows")

// Directory is what the directory of a migration knows of its record.
type Directory interface {
	Migration() string     // random id
	Conversions() []string // the names of those that it knows
}

// Fits returns an [*Error] that wraps [ErrOlder] if the record has a conversion of the migration that the directory
// does not know: the directory knows it before the record has a run of it.
func Fits(ctx context.Context, db *mongo.Database, d Directory) error {
	runs, err := find[*Run](ctx, collection(db), ofMigration(d.Migration()), "started")
	if err != nil {
		return err
	}
	return fits(d.Conversions(), runs)
}

func fits(known []string, runs []*Run) error {
	for _, r := range runs {
		if r.Stands() && !slices.Contains(known, r.Conversion) {
			return refuse(ErrOlder, "the directory is an older copy: it does not know %s, whose files are in %s", r, r.Directory)
		}
	}
	return nil
}

// BeginPlan inserts or replaces the document of a migration, with the next epoch. Without steps, it keeps those that
// are there. The error is an [*Error] if the record and the directory do not fit.
func BeginPlan(ctx context.Context, db *mongo.Database, p Plan, d Directory, version string) error {
	coll, err := open(ctx, db)
	if err != nil {
		return err
	}
	if err := Fits(ctx, db, d); err != nil {
		return err
	}
	p.ID, p.Kind, p.Migration, p.By = planID(d.Migration()), kindPlan, d.Migration(), whoAmI(version)
	var was Plan
	if err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: p.ID}}).Decode(&was); err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return err
	}
	if p.Epoch = was.Epoch + 1; p.Steps == nil {
		p.Steps = was.Steps
	}
	if p.Started, err = Now(ctx, db); err != nil {
		return err
	}
	_, err = coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: p.ID}}, p, options.Replace().SetUpsert(true))
	return err
}

// ofMigration selects the runs of a migration.
func ofMigration(id string) bson.D {
	return bson.D{{Key: "migration", Value: id}, {Key: "kind", Value: bson.D{{Key: "$in", Value: bson.A{Convert, Undo}}}}}
}

// Plans returns the plans in the record, sorted by their last start.
func Plans(ctx context.Context, db *mongo.Database) ([]Plan, error) {
	return find[Plan](ctx, collection(db), bson.D{{Key: "kind", Value: kindPlan}}, "started")
}

// Runs returns all runs in the record, without their decisions, sorted by when they began.
func Runs(ctx context.Context, db *mongo.Database) ([]*Run, error) {
	return find[*Run](ctx, collection(db), bson.D{{Key: "kind", Value: bson.D{{Key: "$in", Value: bson.A{Convert, Undo}}}}}, "started", "epoch")
}

// Alive reports whether a run that has not ended has shown a sign of life within some seconds.
func (r *Run) Alive(now time.Time) bool { return r.Ended == nil && !r.expired(now.Add(-lease)) }

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
	ID        string    `bson:"_id"`
	Kind      string    `bson:"kind"`      // kindPlan
	Migration string    `bson:"migration"` // random id, which the directory has
	Epoch     int64     `bson:"epoch"`     // counts the commands that have written
	StateDir  string    `bson:"stateDir"`
	By        Who       `bson:"by"`
	Started   time.Time `bson:"started"` // of the last run
	// Abandoned is when a person gave the directory up for lost.
	Abandoned *time.Time `bson:"abandoned,omitempty"`
	Steps     []PlanStep `bson:"steps"` // in the order of the work
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

// The reasons for which the record and the directory of a migration do not fit. An [*Error] wraps one of them.
var (
	ErrForgotten = errors.New("the record lacks what the directory knows")
	ErrOlder     = errors.New("the directory lacks what the record knows")
	ErrAbandoned = errors.New("the migration was abandoned")
)

// Directory is what the directory of a migration knows of its record.
type Directory interface {
	Migration() string // random id
	Recorded() int64   // the epoch that the record has for certain; 0 if it may have none
	MarkRecorded(epoch int64) error
	Conversions() []string // the names of those that it knows
}

// FindPlan returns the document of the migration, or nil if there is none. The error is an [*Error] if the
// record and the directory do not fit: one of the two is a copy from before.
func FindPlan(ctx context.Context, db *mongo.Database, d Directory) (*Plan, error) {
	var p *Plan
	err := collection(db).FindOne(ctx, bson.D{{Key: "_id", Value: planID(d.Migration())}}).Decode(&p)
	if errors.Is(err, mongo.ErrNoDocuments) {
		p, err = nil, nil
		if d.Recorded() > 0 {
			err = elsewhere(ctx, db)
		}
	}
	if err != nil {
		return nil, err
	}
	runs, err := find[*Run](ctx, collection(db), ofMigration(d.Migration()), "started")
	if err != nil {
		return nil, err
	}
	return p, p.fits(d.Recorded(), d.Conversions(), runs)
}

// fits returns an error if the document, which may be nil, and the directory do not fit. The directory knows a
// conversion before the record has a run of it, and the epoch after the record.
func (p *Plan) fits(recorded int64, known []string, runs []*Run) error {
	switch {
	case p == nil && recorded > 0:
		return refuse(ErrForgotten, "the record of conversions, %s, does not have this migration: it was dropped", Name)
	case p != nil && p.Abandoned != nil:
		return refuse(ErrAbandoned, "the migration was abandoned on %s", p.Abandoned.UTC().Format(time.DateTime))
	case p != nil && p.Epoch < recorded:
		return refuse(ErrForgotten, "the record of conversions, %s, is an older copy than what was done since", Name)
	}
	for _, r := range runs {
		if r.Stands() && !slices.Contains(known, r.Conversion) {
			return refuse(ErrOlder, "the directory is an older copy: it does not know %s, whose files are in %s", r, r.Directory)
		}
	}
	return nil
}

// BeginPlan inserts or replaces the document of a migration, with the next epoch. Without steps, it keeps those that
// are there. The error is an [*Error] if the record and the directory do not fit. If restore is set, the document is
// written only if the record lacks what the directory knows.
func BeginPlan(ctx context.Context, db *mongo.Database, p Plan, d Directory, restore bool, version string) error {
	coll, err := open(ctx, db)
	if err != nil {
		return err
	}
	was, err := FindPlan(ctx, db, d)
	if restore != errors.Is(err, ErrForgotten) || !restore && err != nil {
		return err
	}
	if was != nil {
		p.Epoch = was.Epoch
		if p.Steps == nil {
			p.Steps = was.Steps
		}
	}
	if p.Started, err = Now(ctx, db); err != nil {
		return err
	}
	p.ID, p.Kind, p.Migration, p.By = planID(d.Migration()), kindPlan, d.Migration(), whoAmI(version)
	p.Epoch = max(p.Epoch, d.Recorded()) + 1
	if _, err := coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: p.ID}}, p, options.Replace().SetUpsert(true)); err != nil {
		return err
	}
	return d.MarkRecorded(p.Epoch)
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

package record

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// markID is the _id of a document that every record contains, whatever the name of its collection.
const markID = "bsonids record"

// looks has the looks of a command into every collection of a database, by database and client: it takes one, and not one for each
// collection that it converts.
var looks sync.Map

// open returns the record as a run needs it that begins: with its mark, and under no other name.
func open(ctx context.Context, db *mongo.Database) (*mongo.Collection, error) {
	coll := collection(db)
	type database struct {
		of   *mongo.Client
		name string
	}
	v, _ := looks.LoadOrStore(database{db.Client(), db.Name()}, new(look))
	if err := v.(*look).elsewhere(ctx, db); err != nil {
		return nil, err
	}
	return coll, mark(ctx, coll)
}

// look is a look into every collection of a database. The runs of a command begin at the same time.
type look struct {
	mu   sync.Mutex
	done bool
}

func (l *look) elsewhere(ctx context.Context, db *mongo.Database) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return nil
	}
	err := elsewhere(ctx, db)
	l.done = err == nil
	return err
}

func mark(ctx context.Context, coll *mongo.Collection) error {
	_, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: markID}})
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}

// elsewhere returns an error if a collection of the database holds a record under another name: two
// runs that do not see the documents of each other cannot exclude each other. Collections that the
// user may not read are skipped.
func elsewhere(ctx context.Context, db *mongo.Database) error {
	specs, err := db.ListCollectionSpecifications(ctx, bson.D{}, options.ListCollections().SetNameOnly(true).SetAuthorizedCollections(true))
	if err != nil {
		return err
	}
	for _, s := range specs {
		if s.Name == Name || s.Type != "" && s.Type != "collection" || strings.HasPrefix(s.Name, "system.") {
			continue
		}
		err := db.Collection(s.Name).FindOne(ctx, bson.D{{Key: "_id", Value: markID}}).Err()
		switch {
		case errors.Is(err, mongo.ErrNoDocuments), failure.Means(err, failure.Unauthorized):
		case err != nil:
			return err
		default:
			return refuse(ErrHeld, "%s.%s is a record of conversions under another name; rename it to %s, or drop it", db.Name(), s.Name, Name)
		}
	}
	return nil
}

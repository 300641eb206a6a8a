package migrate

import (
	"context"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// NotFenced returns a usage error if a cutover that has not ended uses one of the collections.
func NotFenced(ctx context.Context, db *mongo.Database, names ...string) error {
	c, err := record.CutoverOf(ctx, db, names...)
	if failure.IsDenied(err) {
		return nil // without the record, the server refuses the writes
	}
	if err != nil || c == nil {
		return err
	}
	if c.Untouched() {
		return failure.Usagef("%s.%s is compared by a cutover of %s; finish it with bsonids cutover, or give it up with bsonids cutover --roll-back", db.Name(), names[0], strings.Join(c.Names(), ", "))
	}
	return failure.Usagef("%s.%s is fenced by a cutover of %s, in the state %q; finish it with bsonids cutover and bsonids release first",
		db.Name(), names[0], strings.Join(c.Names(), ", "), c.State)
}

// NotReleased returns a usage error if a cutover has put the copy that a conversion made in the place of its collection, and was
// released: there is nothing to convert any more.
func NotReleased(ctx context.Context, db *mongo.Database, collection, into, conversion string) error {
	all, err := record.Cutovers(ctx, db, false)
	if failure.IsDenied(err) {
		return nil
	}
	c := record.Last(all, []string{collection}, []string{into}, []string{conversion})
	if err != nil || c == nil || c.State != record.Released || c.FreedAt == nil {
		return err
	}
	return failure.Usagef("%s.%s was released at %s UTC: its copy %s is in its place, and the conversion is done", db.Name(), collection, c.FreedAt.UTC().Format(time.DateTime), into)
}

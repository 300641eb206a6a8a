package migrate

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// Unsharded returns what is wrong with the new collection of an entry that has one, or "": the collection is sharded, and
// the new one is not, or is not there, or is sharded by another key. Nothing is wrong if a person accepts that, or if another
// collection has the name, such as the copy.
func Unsharded(ctx context.Context, s *session.Session, db *mongo.Database, c plan.Collection) (why string, err error) {
	if c.Into == "" || c.Accepted {
		return "", nil
	}
	name, into := c.Name, c.Into
	err = s.Do(ctx, func() error {
		is, err := server.ShardingOf(ctx, db.Collection(name))
		if err != nil || is == nil {
			return err
		}
		copied, err := server.ShardingOf(ctx, db.Collection(into))
		if err != nil || server.Alike(is, copied) {
			return err
		}
		of, err := server.Specification(ctx, db.Collection(name))
		if err != nil {
			return err
		}
		if of.UUID != nil && c.UUID != "" && hex.EncodeToString(of.UUID.Data) != c.UUID {
			return nil
		}
		there, err := server.Specification(ctx, db.Collection(into))
		if err != nil {
			return err
		}
		why = fmt.Sprintf("%q is %s, and %q, its copy, is %s", name, is, into, copied)
		switch commands := strings.Join(is.Commands(db.Name(), into, of.Options, there.Name != ""), "; "); {
		case copied == nil:
			why += ": run in mongosh: " + commands
		case is.Known() && copied.Known():
			why += ": drop it, or give into another name"
		}
		return nil
	})
	return why, err
}

package record

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Saved is what makes the document of a cutover safe to change. Commands change it one after the other: each change is made
// only of what was read. The document has no field named collection, so that no query for runs finds it, and not the _id of a
// run, which ends in a number.
type Saved struct {
	ID    string `bson:"_id"`
	Kind  string `bson:"kind"`
	State string `bson:"state"`
	// Token changes with each change of the document, and is random. It is empty before the document is inserted.
	Token   string    `bson:"token"`
	By      Who       `bson:"by"`
	Begun   time.Time `bson:"begun"`
	Updated time.Time `bson:"updated"`

	next string // the token of an attempt to save whose answer may be lost
}

// save inserts or replaces doc, which embeds s. It can be called again after an error. The error wraps
// [ErrTakenOver] if another program inserted the document, or changed it since it was read.
func (s *Saved) save(ctx context.Context, db *mongo.Database, doc any) error {
	now, err := Now(ctx, db)
	if err != nil {
		return err
	}
	coll := collection(db)
	if s.next != "" { // an earlier attempt may have succeeded
		n, err := coll.CountDocuments(ctx, s.as(s.next))
		if err != nil {
			return err
		}
		if n == 1 {
			s.Token = s.next
		}
	}
	was, matched := *s, int64(1)
	s.Token, s.Updated, s.next = NewID(), now, ""
	if was.Token == "" {
		s.Begun = now
		_, err = coll.InsertOne(ctx, doc)
	} else {
		var res *mongo.UpdateResult
		if res, err = coll.ReplaceOne(ctx, s.as(was.Token), doc); err == nil {
			matched = res.MatchedCount
		}
	}
	if matched == 0 || mongo.IsDuplicateKeyError(err) {
		err = refuse(ErrTakenOver, "another program changed or deleted the document %s in %s", s.ID, Name)
	}
	if err != nil {
		was.next = s.Token
		*s = was
	}
	return err
}

// as selects the document as it was with the token.
func (s *Saved) as(token string) bson.D {
	return bson.D{{Key: "_id", Value: s.ID}, {Key: "token", Value: token}}
}

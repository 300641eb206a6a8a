package cli

import (
	"context"
	"errors"
	"io/fs"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// errFollowed is why a run ended that made a copy which follows its source.
var errFollowed = errors.New("the copy does not follow its source any more; the same command continues")

// mayFollow makes the refusal of a server on which a copy cannot follow its source a usage error.
func mayFollow(err error) error {
	if errors.Is(err, convert.ErrCannotFollow) {
		return failure.Usagef("--follow: %v", err)
	}
	return err
}

// followed returns the collection to follow. If an earlier run followed it and it was renamed since,
// it is found by its UUID.
func (o *convertOptions) followed(ctx context.Context, db *mongo.Database) (*mongo.Collection, error) {
	coll := db.Collection(o.collection)
	if !o.write {
		return coll, nil
	}
	state, err := convert.ReadState(o.state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return coll, nil
	case err != nil:
		return nil, failure.Usagef("%v", nameFlag(err))
	case state.Stream == nil || state.CollectionUUID == "":
		return coll, nil
	}
	name, err := convert.CollectionWith(ctx, db, state.CollectionUUID)
	if err == nil && name != "" {
		coll = db.Collection(name)
	}
	return coll, err
}

// following returns what a copy needs in order to follow its source. It calls copied when the copy
// has caught up. end must be called at the end.
func (o *convertOptions) following(run *claim, copied func()) (f *convert.Follow, end func()) {
	bar := &terminal.Progress{}
	namespace := o.database + "." + o.collection
	begun := false
	var done int64
	f = &convert.Follow{Record: record.Name, Beat: run.lock.Beat, UntilCaughtUp: o.untilCaughtUp,
		Report: func(s convert.Followed) {
			run.follow(s)
			if s.CaughtUp && !begun {
				begun = true
				copied()
				bar = o.progress(-1, "following", namespace)
			}
			bar.Add(int(s.Written + s.Deleted - done))
			done = s.Written + s.Deleted
			bar.Lag(s.LagSeconds)
		},
		Restarted: func(err error) {
			o.warn("the changes behind the saved position are no longer in the oplog, and the comparison begins again: %s",
				failure.Explain(err, o.connectionString()).Text)
		}}
	return f, func() { bar.Done() }
}

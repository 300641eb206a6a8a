package apply

import (
	"context"
	"errors"
	"io/fs"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// copyGone makes a copy that is complete be made again if it was dropped.
func (w *worker) copyGone(ctx context.Context) error {
	if w.ID.Into == "" || !w.state.Done {
		return nil
	}
	there, err := w.db.ListCollectionNames(ctx, bson.D{{Key: "name", Value: w.ID.Into}})
	if err != nil || len(there) > 0 {
		return err
	}
	w.Warn("%s.%s is not there any more: it is made again", w.ID.Database, w.ID.Into)
	w.state.CopyGone()
	return w.state.Save()
}

// errFollowed is why a run ended that made a copy which follows its source.
var errFollowed = errors.New("the copy does not follow its source any more; the same command continues")

// followed returns the collection to follow. If an earlier run followed it and it was renamed since,
// it is found by its UUID.
func (w *worker) followed(ctx context.Context) (*mongo.Collection, error) {
	coll := w.db.Collection(w.ID.Collection)
	if !w.Write {
		return coll, nil
	}
	state, err := convert.ReadState(w.State)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return coll, nil
	case err != nil:
		return nil, migration.FileError(err)
	case state.Stream == nil || state.CollectionUUID == "":
		return coll, nil
	}
	name, err := convert.CollectionWith(ctx, w.db, state.CollectionUUID)
	if err == nil && name != "" {
		coll = w.db.Collection(name)
	}
	return coll, err
}

// following returns what a copy needs in order to follow its source. It calls copied when the copy
// has caught up. end must be called at the end.
func (w *worker) following(run *migration.Claim, copied func()) (f *convert.Follow, end func()) {
	bar := &progress.Progress{}
	begun := false
	var done int64
	f = &convert.Follow{Record: record.Name, Beat: run.Beat, UntilCaughtUp: w.UntilCaughtUp,
		Report: func(s convert.Followed) {
			run.Follow(s)
			if s.CaughtUp && !begun {
				begun = true
				copied()
				bar = w.Progress(-1, "following", w.namespace())
			}
			bar.Add(int(s.Written + s.Deleted - done))
			done = s.Written + s.Deleted
			bar.Lag(s.LagSeconds)
		},
		Restarted: func(err error) {
			w.Warn("the changes behind the saved position are no longer in the oplog, and the comparison begins again: %s", w.Explain(err).Text)
		}}
	return f, func() { bar.Done() }
}

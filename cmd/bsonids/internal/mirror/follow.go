package mirror

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
)

// Feed is a change stream at a saved position, with the mirrors that it keeps up to date. Every document
// that changed before the position was compared after that, or is pending.
type Feed interface {
	// Begin opens a stream and saves its position, unless there is one. It reports false if the server has
	// none.
	Begin(ctx context.Context) (bool, error)
	// Compare compares all documents, unless they were compared since the stream began.
	Compare(ctx context.Context) error
	// Now returns the operation time of the deployment.
	Now(ctx context.Context) (bson.Timestamp, error)
	// Save saves the position. It also writes something that the stream shows, at least when nothing
	// else changes, so that the stream tells how far it has come.
	Save(ctx context.Context) error
	// Next returns what happened behind the position.
	Next(ctx context.Context) (changes.Batch, error)
	// Apply compares the documents that changed, and those that are pending, and moves the position. It
	// reports false if the position has to stay, because the documents cannot be read yet.
	Apply(ctx context.Context, b changes.Batch) (bool, error)
	// CaughtUp is called when everything that had happened was applied. It reports whether to end.
	CaughtUp(ctx context.Context) (bool, error)
	// Lost is called if it is not known what changed. It reports whether to begin again.
	Lost(ctx context.Context, why string) (bool, error)
}

// Follow compares all documents, and then what changes, until [Feed.CaughtUp] reports that it is enough, or once if
// there is no stream. It begins again if the stream has nothing idle times in a row, not even what Save writes; it
// may have nothing for any time if idle is 0.
func Follow(ctx context.Context, f Feed, idle int) error {
	for again := true; again; {
		is, err := f.Begin(ctx)
		if err == nil {
			err = f.Compare(ctx)
		}
		for done := !is; err == nil; {
			if done {
				return nil
			}
			if err = catchUp(ctx, f, idle); err == nil {
				done, err = f.CaughtUp(ctx)
			}
		}
		var lost *lostTrack
		if !errors.As(err, &lost) {
			return err
		}
		if again, err = f.Lost(ctx, lost.why); err != nil {
			return err
		}
	}
	return nil
}

// lostTrack is the error of catchUp if it is not known what changed.
type lostTrack struct{ why string }

func (e *lostTrack) Error() string { return e.why }

// catchUp applies what happened until now. The stream has passed this time when it shows something later.
// Changes that were read and not applied are read again after an error.
func catchUp(ctx context.Context, f Feed, idle int) error {
	goal, err := f.Now(ctx)
	if err != nil {
		return err
	}
	for nothing := 0; ; {
		if err := f.Save(ctx); err != nil {
			return err
		}
		b, err := f.Next(ctx)
		switch {
		case err != nil:
			return err
		case b.Lost != "":
			return &lostTrack{b.Lost}
		case b.Time.IsZero():
			if nothing++; idle > 0 && nothing > idle {
				return &lostTrack{"the change stream does not show what is written to the record"}
			}
		default:
			nothing = 0
		}
		// A batch without events may have pending documents before it.
		done, err := f.Apply(ctx, b)
		if err != nil {
			return err
		}
		if done && b.Time.After(goal) {
			return f.Save(ctx)
		}
	}
}

package mirror

import (
	"context"

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
	for {
		is, err := f.Begin(ctx)
		if err == nil {
			err = f.Compare(ctx)
		}
		lost := ""
		for done := !is; err == nil && lost == ""; {
			if done {
				return nil
			}
			if lost, err = catchUp(ctx, f, idle); err == nil && lost == "" {
				done, err = f.CaughtUp(ctx)
			}
		}
		if err != nil {
			return err
		}
		if again, err := f.Lost(ctx, lost); err != nil || !again {
			return err
		}
	}
}

// catchUp applies what happened until now. The stream has passed this time when it shows something later.
// Changes that were read and not applied are read again after an error. lost is why it is not known what
// changed, or empty.
func catchUp(ctx context.Context, f Feed, idle int) (lost string, err error) {
	goal, err := f.Now(ctx)
	if err != nil {
		return "", err
	}
	for nothing := 0; ; {
		if err := f.Save(ctx); err != nil {
			return "", err
		}
		b, err := f.Next(ctx)
		switch {
		case err != nil:
			return "", err
		case b.Lost != "":
			return b.Lost, nil
		case b.Time.IsZero():
			if nothing++; idle > 0 && nothing > idle {
				return "the change stream does not show what is written to the record", nil
			}
		default:
			nothing = 0
		}
		// A batch without events may have pending documents before it.
		done, err := f.Apply(ctx, b)
		if err != nil {
			return "", err
		}
		if done && b.Time.After(goal) {
			return "", f.Save(ctx)
		}
	}
}

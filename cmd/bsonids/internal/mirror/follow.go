package mirror

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
)

// Feed is a change stream at a saved position, with the mirrors that it keeps up to date. Every document
// that changed before the position was compared after that, or is pending.
type Feed interface {
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
}

// LostTrack is the error of [CatchUp] if it is not known what changed.
type LostTrack struct{ Why string }

func (e *LostTrack) Error() string { return "it is not known what has changed: " + e.Why }

// CatchUp applies what happened until now. The stream has passed this time when it shows something later.
// The error is a [*LostTrack] if it is not known what happened, or if the stream has nothing idle times in
// a row, not even what Save writes; it may have nothing for any time if idle is 0. Changes that were read
// and not applied are read again after an error.
func CatchUp(ctx context.Context, f Feed, idle int) error {
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
			return &LostTrack{b.Lost}
		case b.Time.IsZero():
			if nothing++; idle > 0 && nothing > idle {
				return &LostTrack{"the change stream does not show what is written to the record"}
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

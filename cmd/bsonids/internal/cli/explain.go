package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// explain describes an error of work in one sentence, with the flag that it is about, and with the command
// or the flag that helps.
func (c *console) explain(err error) *failure.Error {
	var of *migration.CollectionError
	if errors.As(err, &of) {
		e := c.explain(of.Err)
		return &failure.Error{Kind: e.Kind, Text: fmt.Sprintf("%q: %s", of.Collection, e.Text), Err: err}
	}
	var invalid *migration.InvalidError
	var guarded *migration.GuardedError
	var refused *record.Error
	usage := func(format string, args ...any) *failure.Error {
		return &failure.Error{Kind: failure.Usage, Text: fmt.Sprintf(format, args...), Err: err}
	}
	switch {
	case errors.As(err, &invalid):
		return usage("--%s: %v", invalid.Name, invalid.Err)
	case errors.As(err, &guarded):
		return usage("%s; let the guard go first: %s", guarded.Text, c.switching("release", guarded.Database, []string{guarded.Collection}, "--guards"))
	case errors.As(err, &refused) && !errors.Is(err, record.ErrTakenOver):
		return usage("%s%s", refused.Text, remedy(refused))
	}
	return failure.Explain(err, c.connectionString())
}

// named puts words before the description of an error.
func (c *console) named(before string, err error) error {
	e := c.explain(err)
	return &failure.Error{Kind: e.Kind, Text: before + e.Text, Err: err}
}

// remedy returns what to do about a run that may not begin, as the rest of the sentence.
func remedy(e *record.Error) string {
	r := e.Run
	if r == nil {
		r = &record.Run{}
	}
	dir := filepath.Dir(cmp.Or(r.State, r.UndoLog)) // of the migration
	apply := terminal.Command("bsonids", "apply", dir, "--write")
	undo := terminal.Command("bsonids", "undo", dir, "--write")
	switch e.Remedy {
	case record.TakeOver:
		return "; make sure that it has ended, and give --take-over"
	case record.Wait:
		return "; wait for it, or give --take-over if its process has ended"
	case record.WaitOnly:
		return "; wait for it"
	case record.GiveFiles:
		return "; continue it with " + apply + " --take-over"
	case record.Resume:
		return "; wait for it, or continue it with " + apply + ", and --take-over on another machine"
	case record.FinishUndo:
		return "; finish it with " + undo
	case record.FinishFirst:
		return "; continue it with " + apply + ", or undo it with " + undo
	case record.UndoFirst:
		return "; undo it first with " + undo
	case record.StartAnew:
		return "; make a plan in a new directory"
	}
	return ""
}

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// explain describes an error of work in one sentence, with the flag that it is about, and with the command
// or the flag that helps.
func (c *console) explain(err error) *failure.Error {
	var of *failure.CollectionError
	if errors.As(err, &of) {
		e := c.explain(of.Err)
		return &failure.Error{Kind: e.Kind, Text: fmt.Sprintf("%q: %s", of.Collection, e.Text), Err: err}
	}
	var refused *record.Error
	usage := func(format string, args ...any) *failure.Error {
		return &failure.Error{Kind: failure.Usage, Text: fmt.Sprintf(format, args...), Err: err}
	}
	switch {
	case errors.As(err, &refused) && !errors.Is(err, record.ErrTakenOver):
		return usage("%s%s", refused.Text, remedy(refused))
	}
	return failure.Explain(err, c.connectionString())
}

// remedy returns what to do about a run that may not begin.
func remedy(e *record.Error) string {
	dir := "."
	if e.Run != nil {
		dir = e.Run.Directory
	}
	command := func(verb string) string { return terminal.Command("bsonids", verb, dir, "--write") }
	return strings.NewReplacer("APPLY", command("apply"), "UNDO", command("undo")).Replace(e.Remedy)
}

package cli

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// wayOn is what a command that writes prints after an error: what it changed, how to resume, and
// how to undo.
type wayOn struct {
	changed string
	back    string // a command, or a sentence instead
	again   bool   // the same command continues
}

// curable reports whether the same command can continue after err. It cannot if a file does not
// belong to the conversion or is damaged, if another run has taken over, if the server rejects a
// document, or if the collection was dropped.
func curable(err error) bool {
	var file *files.Error
	var refused *record.Error
	var document *documents.Error
	var lost *convert.LostError
	var e *failure.Error
	switch {
	case errors.As(err, &file):
		var io *fs.PathError
		return errors.As(err, &io)
	case errors.As(err, &document):
		return document.Passes
	case errors.As(err, &refused), errors.As(err, &lost):
		return false
	}
	return !errors.As(err, &e) || e.Kind != failure.Usage
}

// serverArgs returns the flags that name the server.
func (c *console) serverArgs() []string {
	switch {
	case c.uriFile != "":
		return []string{"--uri-file", c.uriFile}
	case c.uri != "":
		return []string{"--uri", c.uri}
	}
	return nil
}

// command returns a command line of this program for the same server.
func (c *console) command(words ...string) string {
	return terminal.Command(slices.Concat([]string{"bsonids"}, words, c.serverArgs())...)
}

// writes reports whether the command was run in order to change documents.
func (c *console) writes() bool {
	f := c.cmd.Flags().Lookup("write")
	return f != nil && f.Value.String() == "true"
}

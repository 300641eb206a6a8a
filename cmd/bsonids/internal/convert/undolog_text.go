package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// WriteText writes the undo log or the ledger at path as text: each record on a line of its own, the
// entries of an undo log in canonical extended JSON.
func WriteText(w io.Writer, path string) error {
	u, err := ReadUndoLog(path)
	if errors.Is(err, errNoUndoLog) {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := ledger.WriteText(w, journal.OSFile{File: f}); err != nil {
			return fmt.Errorf("%s: neither an undo log nor a ledger of this version: %w", path, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = u.Close() }()
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	write := func(v any) error {
		line.Reset()
		if err := enc.Encode(v); err != nil {
			return err
		}
		_, err := w.Write(line.Bytes())
		return err
	}
	if err := write(u.Header); err != nil {
		return err
	}
	for {
		e, err := u.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		text, err := e.text()
		if err != nil {
			return u.fail(err)
		}
		if err := write(text); err != nil {
			return err
		}
	}
	if u.mark == nil {
		return nil
	}
	return write(u.mark)
}

// entryText is an entry as text.
type entryText struct {
	ID      json.RawMessage `json:"_id"`
	Changes []changeText    `json:"changes"`
	Again   bool            `json:"again,omitempty"`
}

type changeText struct {
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old"`
	New  json.RawMessage `json:"new"`
}

func (e Entry) text() (t entryText, err error) {
	t.Again = e.Again
	if t.ID, err = extJSON(e.ID); err != nil { // extended JSON lacks some values
		if t.ID, err = json.Marshal(map[string]any{"type": e.ID.Type.String(), "bytes": e.ID.Value}); err != nil {
			return t, err
		}
	}
	for _, ch := range e.Changes {
		c := changeText{Path: ch.Path}
		if c.Old, err = storedJSON(e.from, ch.Old, ch.OldValue); err != nil {
			return t, err
		}
		if c.New, err = storedJSON(e.to, ch.New, ch.NewValue); err != nil {
			return t, err
		}
		t.Changes = append(t.Changes, c)
	}
	return t, nil
}

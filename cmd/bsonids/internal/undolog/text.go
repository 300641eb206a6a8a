package undolog

import (
	"encoding/json"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// WriteText writes the log at path as text: each record on a line of its own, the entries in canonical extended JSON.
func WriteText(w io.Writer, path string) error {
	u, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = u.Close() }()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(u.Header); err != nil {
		return err
	}
	if err := u.all(func(e Entry) error { return enc.Encode(e.text()) }); err != nil || u.Undone == nil {
		return err
	}
	return enc.Encode(u.Undone)
}

// entryText is an entry as text.
type entryText struct {
	ID      any          `json:"_id"`
	Changes []changeText `json:"changes"`
	Again   bool         `json:"again,omitempty"`
}

type changeText struct {
	Path string `json:"path"`
	Old  any    `json:"old"`
	New  any    `json:"new"`
}

func (e Entry) text() entryText {
	t := entryText{ID: asText(e.ID), Again: e.Again}
	for _, ch := range e.Changes {
		t.Changes = append(t.Changes, changeText{ch.Path, asText(ch.Old.Raw()), asText(ch.New.Raw())})
	}
	return t
}

// asText returns a value in extended JSON, or its type and its bytes if extended JSON lacks it.
func asText(v bson.RawValue) any {
	b, err := documents.ExtJSON(v)
	if err != nil {
		return map[string]any{"type": v.Type.String(), "bytes": v.Value}
	}
	return json.RawMessage(b)
}

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// schemaVersion is the version of the JSON documents that the command prints. The directory
// docs/schemas has a schema for each. A change that may break a program that reads a document needs a
// new version. A new key does not.
const schemaVersion = 1

// Result is what a command prints: as a table, and as JSON by its tags, or by those of its document.
type Result interface{ Text(w io.Writer) }

// JSON writes v, which must be encoded as an object with keys, as indented JSON. It adds the key
// schemaVersion.
func JSON(w io.Writer, v any) error {
	if of, ok := v.(interface{ document() any }); ok {
		v = of.document()
	}
	var doc, b bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if err == nil {
		fields := bytes.TrimPrefix(doc.Bytes(), []byte("{"))
		err = json.Indent(&b, fmt.Appendf(nil, `{"schemaVersion":%d,%s`, schemaVersion, fields), "", "  ")
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	// JSON may contain unescaped characters that control a terminal.
	var out []byte
	for _, r := range b.String() {
		if terminal.Visible(r) == r {
			out = utf8.AppendRune(out, r)
		} else {
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
	}
	_, err = w.Write(out)
	return err
}

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// taskText returns what is converted, without the collection.
func taskText(t kinds.Task) string {
	text := strings.TrimPrefix(kinds.Describe(t.Pairs), "from ")
	if t.Into != "" {
		text += ", into " + terminal.Cell(t.Into)
	}
	if t.Filter != "" {
		text += ", filter " + terminal.Cell(t.Filter)
	}
	return text
}

// fieldsOf returns the names of the fields that are converted.
func fieldsOf(t kinds.Task) (names []string) {
	for _, p := range t.Pairs {
		names = append(names, p.Fields...)
	}
	slices.Sort(names)
	return slices.Compact(names) // a field may have values of several kinds
}

// printed is the maximum number of documents in a list. The JSON output contains all of them.
const printed = 10

// findings writes findings about the documents of the conversion.
func findings(w io.Writer, t kinds.Task, found []convert.Skip) {
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, %s:\n", terminal.Cell(t.Collection), taskText(t))
	list(w, found[:min(len(found), printed)], func(f convert.Skip) []any { return []any{mongosh(f.ID), f.Reason} }, "_id", "finding")
	if n := len(found) - printed; n > 0 {
		fmt.Fprintf(w, "… and %d more; --output json lists them\n", n)
	}
}

// mongosh writes an _id. UUIDs and ObjectIDs can be pasted into mongosh.
func mongosh(v bson.RawValue) string {
	if subtype, data, ok := v.BinaryOK(); ok && len(data) == 16 {
		return explain.Paste(subtype, [16]byte(data))
	}
	if id, ok := v.ObjectIDOK(); ok {
		return fmt.Sprintf("ObjectId(%q)", id.Hex())
	}
	return v.String()
}

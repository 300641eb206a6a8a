package report

import (
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// printed is the maximum number of documents in a list. The JSON output contains all of them.
const printed = 10

// reasons writes why values were left unchanged, and how many.
func reasons(w io.Writer, n rule.Tally) {
	if len(n) > 0 {
		fmt.Fprintln(w)
		tally(w, "skipped because", "times", n)
	}
}

// findings writes the findings about single documents.
func findings(w io.Writer, found []convert.Skip) {
	if len(found) > 0 {
		list(w, "finding", found, int64(len(found)))
	}
}

func list(w io.Writer, header string, skips []convert.Skip, n int64) {
	fmt.Fprintln(w)
	t := newTable(w, "_id", header)
	for _, s := range skips[:min(len(skips), printed)] {
		t.AppendRow([]any{mongosh(s.ID), s.Reason})
	}
	t.Render()
	if n > printed {
		fmt.Fprintf(w, "… and %d more; --output json lists them\n", n-printed)
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

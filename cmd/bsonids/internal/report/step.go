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

// StepStatus is how far a conversion of a plan has come.
type StepStatus string

// The statuses.
const (
	NotBegun    StepStatus = "not begun"
	Running     StepStatus = "running"
	Stopped     StepStatus = "stopped"
	DoneStep    StepStatus = "done"
	Unverified  StepStatus = "not verified" // the copy differs from its source
	WasUndone   StepStatus = "undone"
	BeingUndone StepStatus = "being undone"
)

// Step is one conversion of a plan, and how far it is. All reports about conversions have it.
type Step struct {
	kinds.Task
	Status StepStatus `json:"status"`
}

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

// text returns what is converted, without the collection.
func (s Step) text() string {
	text := taskText(s.Task)
	return text
}

// fields returns the names of the fields that are converted.
func (s Step) fields() (names []string) {
	for _, p := range s.Pairs {
		names = append(names, p.Fields...)
	}
	slices.Sort(names)
	return slices.Compact(names) // a field may have values of several kinds
}

// printed is the maximum number of documents in a list. The JSON output contains all of them.
const printed = 10

// findings writes findings about the documents of the conversion.
func (s Step) findings(w io.Writer, found []convert.Skip) {
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, %s:\n", terminal.Cell(s.Collection), s.text())
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

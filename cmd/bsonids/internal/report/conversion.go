package report

import (
	"fmt"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Conversion describes the conversion that a report is about, and how it ended.
type Conversion struct {
	convert.Identity
	From, To   kinds.Kind
	Write      bool              // false for a dry run
	Failed     bool              // the conversion stopped before its end
	Took       time.Duration     // 0 if it is not known
	Decision   *decide.Decision  // nil if there is none
	Earlier    bool              // an earlier run made the decision
	SkipList   *convert.SkipList // nil if there is none
	References *References       // nil if there was no search
}

func (c Conversion) source() string { return c.Database + "." + c.Collection }

func (c Conversion) sameSubtype() bool { return c.From.Subtype == c.To.Subtype }

// part returns the part for the title of a report.
func (c Conversion) part() string {
	if c.Part == "" {
		return ""
	}
	return ", part " + c.Part
}

// conversionJSON is the JSON report of a conversion.
type conversionJSON struct {
	Collection string           `json:"collection"`
	From       string           `json:"from"`
	To         string           `json:"to"`
	Into       string           `json:"into,omitempty"`
	Written    bool             `json:"written"`
	Finished   bool             `json:"finished"`
	Examples   []any            `json:"examples,omitempty"`
	Decision   *decide.Decision `json:"decision,omitempty"`
	SkipList   string           `json:"skipList,omitempty"` // path of the file
	References *References      `json:"references,omitempty"`
	Result     any              `json:"result"`
}

func (c Conversion) json(finished bool, examples []any, result any) conversionJSON {
	r := conversionJSON{Collection: c.source(), From: c.From.Name, To: c.To.Name, Written: c.Write, Finished: finished, Examples: examples,
		Decision: c.Decision, References: c.References, Result: result}
	if c.SkipList.Begun() {
		r.SkipList = c.SkipList.Path()
	}
	if c.Into != "" {
		r.Into = c.Database + "." + c.Into
	}
	return r
}

// InPlaceJSON writes the result of a conversion in place as JSON.
func InPlaceJSON(w io.Writer, c Conversion, res convert.Result) error {
	var examples []any
	for _, p := range res.Examples {
		changes := bson.A{}
		for _, ch := range p.Changes {
			changes = append(changes, bson.D{{Key: "path", Value: ch.Path},
				{Key: "old", Value: value(c.From, ch.Old, ch.OldValue)}, {Key: "new", Value: value(c.To, ch.New, ch.NewValue)}})
		}
		examples = append(examples, extended(bson.D{{Key: "_id", Value: p.ID}, {Key: "changes", Value: changes}}))
	}
	return JSON(w, c.json(!c.Failed, examples, res))
}

// value returns a value of the kind k, given as the bytes of a binary value, or v if it is not empty.
func value(k kinds.Kind, octets [16]byte, v rule.Value) any {
	if v != "" {
		return v.Raw()
	}
	return bson.Binary{Subtype: k.Subtype, Data: octets[:]}
}

// paste writes a value so that it can be pasted into mongosh.
func paste(k kinds.Kind, octets [16]byte, v rule.Value) string {
	if v != "" {
		return mongosh(v.Raw())
	}
	return explain.Paste(k.Subtype, octets)
}

// InPlace writes the result of a conversion in place.
func InPlace(w io.Writer, c Conversion, res convert.Result) {
	verb, how := written(c.Write, "changed", "to change")
	fmt.Fprintf(w, "%s%s: %s to %s%s\n\n", c.source(), c.part(), c.From, c.To, how)
	decision(w, c)
	fields(w, "values "+verb, res.Fields)
	fmt.Fprintf(w, "%d values in %d documents %s, of %d documents read", res.Values, res.Documents, verb, res.Read)
	if c.Write && !c.Failed && c.Took > 0 {
		fmt.Fprintf(w, ", in %s", c.Took.Round(10*time.Millisecond))
	}
	fmt.Fprintln(w)
	allRuns(w, res.Values, res.Documents, res.EarlierValues, res.Earlier)
	if res.Overtaken > 0 {
		fmt.Fprintf(w, "%d documents were changed or deleted by other programs first; they have no value left to convert\n", res.Overtaken)
	}
	if len(res.Examples) > 0 {
		fmt.Fprintln(w)
		t := newTable(w, "_id", "path", "old", "new")
		for _, p := range res.Examples {
			for i, ch := range p.Changes {
				id := ""
				if i == 0 {
					id = mongosh(p.ID)
				}
				t.AppendRow([]any{id, ch.Path, paste(c.From, ch.Old, ch.OldValue), paste(c.To, ch.New, ch.NewValue)})
			}
		}
		t.Render()
	}
	skips(w, res)
	skipList(w, c, res.Left)
	switch {
	case c.Failed:
	case !c.Write && res.Documents > 0:
		fmt.Fprintln(w, "\nAdd --write to change them.")
	case c.Write:
		fmt.Fprintln(w, "\nDone. Run bsonids verify to verify the result.")
	}
}

// allRuns writes the counts of all runs, if earlier ones changed anything.
func allRuns(w io.Writer, values, documents, earlierValues, earlier int64) {
	if earlier > 0 {
		fmt.Fprintf(w, "%d values in %d documents in all runs\n", earlierValues+values, earlier+documents)
	}
}

// fields writes the number of values in each field.
func fields(w io.Writer, header string, n rule.Tally) {
	if len(n) > 0 {
		tally(w, "field", header, n)
		fmt.Fprintln(w)
	}
}

// FinishedJSON writes as JSON that an earlier run completed the conversion, except for the skipped
// documents.
func FinishedJSON(w io.Writer, c Conversion, all convert.Totals) error {
	if c.Into != "" {
		return JSON(w, c.json(true, nil, convert.Copied{Fields: rule.Tally{}, Indexes: []string{}, Earlier: all.Changed, EarlierValues: all.Values}))
	}
	return JSON(w, c.json(true, nil, convert.Result{Fields: rule.Tally{}, Skipped: all.Skipped, Earlier: all.Changed, EarlierValues: all.Values}))
}

// Finished writes that, according to the state file named state, an earlier run completed the
// conversion, except for the skipped documents.
func Finished(w io.Writer, c Conversion, state string, all convert.Totals) {
	fmt.Fprintf(w, "%s: according to %s, this conversion is finished; nothing was done.\n", c.source(), state)
	allRuns(w, 0, 0, all.Values, all.Changed)
	if all.Skipped > 0 {
		fmt.Fprintf(w, "It skipped %d documents.\n", all.Skipped)
	}
	if !c.sameSubtype() || c.Into != "" {
		fmt.Fprintln(w, "To convert the collection again, use a new state file.")
	}
}

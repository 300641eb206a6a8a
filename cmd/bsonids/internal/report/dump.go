package report

import (
	"fmt"
	"io"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Dump describes the conversion of a dump.
type Dump struct {
	Input, Output string // Output is empty for a dry run
	From, To      kinds.Kind
	Decision      string // file of the decision; empty if it was made from the input
	SkipList      string // empty if there is none
	Took          time.Duration
	Size          int64
}

// dumpJSON is the JSON report of the conversion of a dump, or of its proof.
type dumpJSON struct {
	Dump     string `json:"dump"`
	Out      string `json:"out,omitempty"`
	From     string `json:"from"`
	To       string `json:"to"`
	Written  bool   `json:"written"`
	SkipList string `json:"skipList,omitempty"`
	Examples []any  `json:"examples,omitempty"`
	Result   any    `json:"result"`
}

// DumpJSON writes the result of a conversion as JSON.
func DumpJSON(w io.Writer, d Dump, res offline.Result) error {
	r := dumpJSON{Dump: d.Input, Out: d.Output, From: d.From.Name, To: d.To.Name, Written: d.Output != "", SkipList: d.SkipList, Result: res}
	for _, c := range res.Collections {
		for _, e := range c.Examples {
			r.Examples = append(r.Examples, extended(bson.D{{Key: "collection", Value: c.Namespace}, {Key: "_id", Value: e.ID}, {Key: "path", Value: e.Path},
				{Key: "old", Value: value(d.From, e.Old, e.OldValue)}, {Key: "new", Value: value(d.To, e.New, e.NewValue)}}))
		}
	}
	return JSON(w, r)
}

// DumpConverted writes the result of a conversion.
func DumpConverted(w io.Writer, d Dump, res offline.Result) {
	verb, how := "changed", " into "+d.Output
	if d.Output == "" {
		verb, how = "to change", ""
	}
	fmt.Fprintf(w, "%s%s: %s to %s", d.Input, how, d.From, d.To)
	if d.Output == "" {
		fmt.Fprint(w, "; dry run, nothing is written")
	}
	fmt.Fprint(w, "\n\n")
	copied := 0
	for _, c := range res.Collections {
		if c.Role == offline.Unselected || c.Role == offline.System || c.Documents == 0 && len(c.Constants) == 0 {
			copied++
			continue
		}
		fmt.Fprintf(w, "%s: %d documents, %d of them %s\n\n", terminal.Cell(c.Namespace), c.Documents, c.Changed, verb)
		decision(w, Conversion{Decision: c.Decision})
		fields(w, "values "+verb, c.Fields)
		dumpExamples(w, d, c)
		if len(c.SkippedFor) > 0 {
			tally(w, "skipped because", "times", c.SkippedFor)
			fmt.Fprintln(w)
		}
		dumpConstants(w, c)
	}
	fmt.Fprintf(w, "%d values in %d documents %s, of %d documents read", res.Values, res.Changed, verb, res.Documents)
	if d.Output != "" && d.Took > 0 {
		fmt.Fprintf(w, ", in %s", d.Took.Round(10*time.Millisecond))
	}
	fmt.Fprintln(w)
	if copied > 0 {
		fmt.Fprintf(w, "%d other collections are copied unchanged\n", copied)
	}
	if d.SkipList != "" {
		fmt.Fprintf(w, "\n%d values were left unchanged; %s lists them.\n", res.Left+res.Constants, d.SkipList)
	}
	if d.Output == "" {
		fmt.Fprintln(w, "\nAdd --out to write the converted dump.")
	} else {
		fmt.Fprintf(w, "\nDone. %s is unchanged. Prove the conversion with bsonids verify.\n", d.Input)
	}
}

func dumpExamples(w io.Writer, d Dump, c *offline.Collection) {
	if len(c.Examples) == 0 {
		return
	}
	t := newTable(w, "_id", "path", "old", "new")
	for i, e := range c.Examples {
		id := ""
		if i == 0 || !e.ID.Equal(c.Examples[i-1].ID) {
			id = mongosh(e.ID)
		}
		t.AppendRow([]any{id, e.Path, paste(d.From, e.Old, e.OldValue), paste(d.To, e.New, e.NewValue)})
	}
	t.Render()
	fmt.Fprintln(w)
}

func dumpConstants(w io.Writer, c *offline.Collection) {
	if len(c.Constants) == 0 {
		return
	}
	t := newTable(w, "constant in the options, indexes or view, left unchanged", "value")
	for _, k := range c.Constants {
		path := k.Path
		if path == "" {
			path = "the metadata could not be read"
		}
		t.AppendRow([]any{terminal.Cell(path), k.Value})
	}
	t.Render()
	fmt.Fprintln(w)
}

// The bases of the proof of the conversion of a dump.
const (
	restsOnInput    Basis = "input"    // and the decision that its values give
	restsOnDecision Basis = "decision" // in a file, and the input
)

func (d Dump) basis() Basis {
	if d.Decision != "" {
		return restsOnDecision
	}
	return restsOnInput
}

// restsOn says what the proof of the conversion of a dump rests on.
func (d Dump) restsOn() string {
	if d.Decision != "" {
		return "the input and the decision in " + d.Decision
	}
	return "the input, and the decision that its values give"
}

// DumpProofJSON writes the result of a proof as JSON.
func DumpProofJSON(w io.Writer, d Dump, v offline.Verified) error {
	var findings []any
	for _, f := range v.Findings {
		if f.ID.Type != 0 {
			findings = append(findings, extended(bson.D{{Key: "collection", Value: f.Namespace}, {Key: "_id", Value: f.ID}, {Key: "reason", Value: f.Reason}}))
		} else {
			findings = append(findings, f)
		}
	}
	return JSON(w, struct {
		Dump     string `json:"dump"`
		Out      string `json:"out"`
		From     string `json:"from"`
		To       string `json:"to"`
		Proven   bool   `json:"proven"`
		RestsOn  Basis  `json:"restsOn"`
		Decision string `json:"decision,omitempty"`
		Findings []any  `json:"findings,omitempty"`
		Result   any    `json:"result"`
	}{d.Input, d.Output, d.From.Name, d.To.Name, v.Holds(), d.basis(), d.Decision, findings, v})
}

// DumpProof writes the result of a proof.
func DumpProof(w io.Writer, d Dump, v offline.Verified) {
	fmt.Fprintf(w, "%s and %s: %s to %s\n\n", d.Input, d.Output, d.From.Name, d.To.Name)
	t := newTable(w)
	t.AppendRow([]any{"documents of the input", v.Documents})
	t.AppendRow([]any{"values to convert in them", v.Values})
	if v.Left > 0 {
		t.AppendRow([]any{"values that the decision leaves unchanged", v.Left})
	}
	if v.Constants > 0 {
		t.AppendRow([]any{"constants in metadata, which are left unchanged", v.Constants})
	}
	t.AppendRow([]any{"documents equal to the converted document of the input", v.Equal})
	t.AppendRow([]any{"different", v.Wrong})
	t.AppendRow([]any{"missing in the output", v.Missing})
	t.AppendRow([]any{"in the output without a document in the input", v.Extra})
	t.AppendRow([]any{"differences in metadata and files", v.Other})
	t.Render()
	if len(v.Findings) > 0 {
		fmt.Fprintln(w)
		t := newTable(w, "collection", "_id", "finding")
		for _, f := range v.Findings {
			id := ""
			if f.ID.Type != 0 {
				id = mongosh(f.ID)
			}
			t.AppendRow([]any{terminal.Cell(f.Namespace), id, f.Reason})
		}
		t.Render()
	}
	if !v.Holds() {
		fmt.Fprintln(w, "\nNot proven.")
		return
	}
	fmt.Fprintf(w, "\nProven by %s: %s holds the documents of %s in their order, each converted, byte for byte, and no others.\n", d.restsOn(), d.Output, d.Input)
}

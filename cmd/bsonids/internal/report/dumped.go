package report

import (
	"encoding/json"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// DumpProof is the result of the comparison of a dump with its conversion.
type DumpProof struct {
	Path, Out string
	offline.Verified
}

// MarshalJSON writes the proof as a part of a JSON report.
func (p *DumpProof) MarshalJSON() ([]byte, error) {
	var findings []any
	for _, f := range p.Findings {
		doc := bson.D{{Key: "collection", Value: f.Namespace}}
		if f.ID.Type != 0 {
			doc = append(doc, bson.E{Key: "_id", Value: f.ID})
		}
		findings = append(findings, extended(append(doc, bson.E{Key: "reason", Value: f.Reason})))
	}
	return json.Marshal(struct {
		Path     string `json:"path"`
		Out      string `json:"out"`
		Read     int64  `json:"documentsRead"`
		Equal    int64  `json:"documentsEqual"` // to the converted document of the input
		Wrong    int64  `json:"documentsWrong"`
		Missing  int64  `json:"documentsMissing"`
		Extra    int64  `json:"documentsExtra"`
		Other    int64  `json:"otherDifferences"`
		Findings []any  `json:"findings,omitempty"`
	}{p.Path, p.Out, p.Documents, p.Equal, p.Wrong, p.Missing, p.Extra, p.Other, findings})
}

// write writes the proof as a table.
func (p *DumpProof) write(w io.Writer) {
	t := newTable(w)
	t.AppendRow([]any{"documents of " + p.Path, p.Documents})
	t.AppendRow([]any{"documents of " + p.Out + " equal to their converted source", p.Equal})
	t.AppendRow([]any{"different", p.Wrong})
	t.AppendRow([]any{"missing", p.Missing})
	t.AppendRow([]any{"without a source", p.Extra})
	t.AppendRow([]any{"differences in metadata and files", p.Other})
	fmt.Fprintln(w)
	t.Render()
	if len(p.Findings) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = newTable(w, "collection", "_id", "finding")
	for _, f := range p.Findings {
		id := ""
		if f.ID.Type != 0 {
			id = mongosh(f.ID)
		}
		t.AppendRow([]any{terminal.Cell(f.Namespace), id, f.Reason})
	}
	t.Render()
}

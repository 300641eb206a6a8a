package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Divide makes the plan one about a part of the documents of each collection, such as 2/8.
func (p *Plan) Divide(part string) {
	p.Part = part
	p.Comment = append(p.Comment, "", fmt.Sprintf("This plan is about part %s of the documents of each collection: a hash of _id assigns each document to a part.", part),
		"The values below are those of all documents. The other parts need plans with the same decisions: bsonids plan --like.")
}

// Division returns the name of the division of a collection that the plan is about a part of: the number of parts,
// and a hash of what the plan decides about the collection. It is empty for a plan about all documents. Parts of one
// division have the same decisions, and no document in common.
func (p *Plan) Division(collection string) string {
	_, parts, ok := strings.Cut(p.Part, "/")
	if !ok {
		return ""
	}
	decisions := []string{p.To}
	for _, c := range p.Collections {
		for _, f := range c.Fields {
			if f.converted() && c.Name == collection {
				decisions = append(decisions, fmt.Sprintf("%q %q %q %s %q %v", c.Filter, c.Into, f.Plain(), f.Stored, f.Decision, f.Trust))
			}
		}
	}
	slices.Sort(decisions)
	return parts + "-" + sumOf([]byte(strings.Join(decisions, "\n")))[:16]
}

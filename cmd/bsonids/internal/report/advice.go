package report

import (
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// group is a set of fields for which a user does the same.
type group struct {
	Key   string // for the page: letters only
	Label string
	Todo  string
	Plan  bool // a plan is made for that
	N     int  // the number of its fields, in a summary
}

const byPlan = "Make a plan, which converts the field."

// groups are the groups in the order of the page. Each kind of subtype 3 has one.
var groups = slices.Insert([]group{
	{Key: "mixed", Label: "in several byte orders", Plan: true,
		Todo: "Separate the documents by the program that wrote them: make a plan, and give each part a filter there."},
	{Key: "undetermined", Label: "of undetermined byte order", Plan: true,
		Todo: "Find out the byte order from the program that wrote the values; each field says what determines it. Then make a plan, and decide there, with trust."},
	{Key: kinds.Generic, Label: "UUIDs of subtype 0", Plan: true, Todo: byPlan},
	{Key: kinds.GoStruct, Label: "documents of Go structs", Plan: true, Todo: "Make a plan, and decide there to convert the documents to UUIDs. Or read them with AlsoDecodeSubtype0."},
	{Key: "empty", Label: "empty documents in place of ids", Todo: "Find the Go program that wrote these documents, and give its type a codec. Its values cannot be had back."},
	{Key: kinds.OfBinaryText, Label: "the text of UUIDs in binary values", Plan: true, Todo: "Make a plan, and decide there to convert the values to UUIDs."},
	{Key: "malformed", Label: "of subtype 3 or 4 and no UUIDs", Todo: "Find the program that wrote these values. bsonids does not convert them."},
	{Key: "binary", Label: "subtype 0, not necessarily UUIDs", Todo: "Nothing to do, unless you know that these values are UUIDs."},
	{Key: kinds.OfText, Label: "text", Plan: true, Todo: "Nothing to do. A plan can convert text to binary values, if you decide so."},
	{Key: kinds.Standard, Label: "standard (subtype 4)", Todo: "Nothing to do."},
}, 2, func() (legacy []group) {
	for _, k := range kinds.Subtype3.Kinds() {
		legacy = append(legacy, group{Key: k.Name, Label: k.Name, Plan: true, Todo: byPlan})
	}
	return legacy
}()...)

// groupOf returns the key of the group of a field.
func groupOf(f scan.Field) string {
	binary := false
	for _, e := range f.Evidence { // subtype 3 first
		switch {
		case e.Verdict == scan.Mixed:
			return "mixed"
		case e.Subtype == 3:
			return string(e.Verdict)
		case e.Verdict.Named():
			return kinds.Generic
		default:
			binary = true
		}
	}
	switch n := f.Counts; {
	case n.BinaryText > 0:
		return kinds.OfBinaryText
	case n.Standard > 0:
		return kinds.Standard
	case n.Text > 0:
		return kinds.OfText
	case binary:
		return "binary"
	case n.Structs > 0:
		return kinds.GoStruct
	case n.Empty > 0 && n.Malformed == 0:
		return "empty"
	}
	return "malformed"
}

// advice is what to do about a field, with a command if there is one.
type advice struct{ Text, Command string }

// adviseOn returns what to do about the field f of collection c.
func adviseOn(c scan.Collection, f scan.Field) advice {
	g := groups[slices.IndexFunc(groups, func(g group) bool { return g.Key == groupOf(f) })]
	switch key := g.Key; {
	case key == kinds.Standard && f.Counts.Text > 0:
		g.Todo, g.Plan = "Make a plan, and decide there to convert the values that are text.", true
	case (key == "mixed" || key == "undetermined") && c.Mode != source.All:
		return advice{"Scan all documents. The report may then determine more.", command(c, "scan", "--all")}
	case key == kinds.Generic && slices.ContainsFunc(f.Evidence, func(e scan.Evidence) bool { return e.Verdict.Named() && !e.Verdict.Convertible() }):
		g.Todo, g.Plan = "bsonids does not convert subtype 0 in this byte order.", false
	case g.Todo == byPlan && (f.Path == "_id" || strings.HasPrefix(f.Path, "_id.")):
		g.Todo = "_id cannot be changed in place. Make a plan, which copies the collection with all its values converted."
	}
	if !g.Plan {
		return advice{Text: g.Todo}
	}
	return advice{g.Todo, command(c, "plan", "migration.d")}
}

// command returns a command line about a collection.
func command(c scan.Collection, words ...string) string {
	database, collection, _ := strings.Cut(c.Namespace, ".")
	return terminal.Command(slices.Concat([]string{"bsonids"}, words, []string{"--db", database, "--collection", collection})...)
}

// summary is the beginning of the page.
type summary struct {
	Collections, WithUUIDs, Fields int
	Documents                      int64 // that were read
	Sampled                        bool  // not all documents were read
	Groups                         []group
}

func summarize(r scan.Report) summary {
	s := summary{Collections: len(r.Collections)}
	fields := make(map[string]int) // of each group
	for _, c := range r.Collections {
		s.Documents += c.Scanned
		s.Sampled = s.Sampled || c.Mode != source.All
		if len(c.Fields) > 0 {
			s.WithUUIDs++
		}
		s.Fields += len(c.Fields)
		for _, f := range c.Fields {
			fields[groupOf(f)]++
		}
	}
	for _, g := range groups {
		if g.N = fields[g.Key]; g.N > 0 {
			s.Groups = append(s.Groups, g)
		}
	}
	return s
}

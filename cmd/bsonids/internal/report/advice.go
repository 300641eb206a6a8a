package report

import (
	"fmt"
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
	Todo  string // what to do, after the number of fields; empty if there is nothing to do
}

// groups are the groups in the order of the page.
var groups = []group{
	{"mixed", "in several byte orders, or only in part in one", "separate the documents by the program that wrote them, and give each part a filter in a plan"},
	{"undetermined", "of undetermined byte order", "find out the byte order; each field says what determines it"},
	{"javaLegacy", "javaLegacy", "convert from javaLegacy"},
	{"csharpLegacy", "csharpLegacy", "convert from csharpLegacy"},
	{"pythonLegacy", "pythonLegacy", "convert from pythonLegacy"},
	{kinds.Generic, "UUIDs of subtype 0", "convert from generic, if the order is network order"},
	{kinds.GoStruct, "documents of Go structs", "convert from goStruct, or read them with AlsoDecodeSubtype0"},
	{"malformed", "without a UUID of 16 bytes", "find the program that wrote these values; bsonids does not convert them"},
	{"binary", "subtype 0, not necessarily UUIDs", ""},
	{kinds.OfText, "text", ""},
	{kinds.Standard, "standard (subtype 4)", ""},
}

// groupOf returns the key of the group of a field.
func groupOf(f scan.Field) string {
	binary := false
	for _, e := range f.Evidence { // subtype 3 first
		switch {
		case e.Verdict.Outcome == scan.Mixed:
			return "mixed"
		case e.Subtype == 3 && e.Verdict.Outcome == scan.Undecided:
			return "undetermined"
		case e.Subtype == 3:
			return e.Verdict.String()
		case e.Verdict.Outcome == scan.Named:
			return kinds.Generic
		default:
			binary = true
		}
	}
	switch n := f.Counts; {
	case n.Standard > 0:
		return kinds.Standard
	case n.Text > 0:
		return kinds.OfText
	case binary:
		return "binary"
	case n.Structs > 0:
		return kinds.GoStruct
	}
	return "malformed"
}

// advice is what to do about a field, with a command if there is one.
type advice struct{ Text, Command string }

// adviseOn returns what to do about the field f of collection c.
func adviseOn(c scan.Collection, f scan.Field) advice {
	key := groupOf(f)
	switch key {
	case kinds.Standard:
		if f.Counts.Text > 0 {
			return advice{"Make a plan, and decide there to convert the values that are text:", planOf(c)}
		}
		return advice{Text: "Nothing to do."}
	case kinds.OfText:
		return advice{"Nothing to do. A plan can convert text to binary values, if you decide so:", planOf(c)}
	case kinds.GoStruct:
		return advice{"Make a plan, and decide there to convert the documents to UUIDs:", planOf(c)}
	case "binary":
		return advice{Text: "Nothing to do, unless you know that these values are UUIDs."}
	case "malformed":
		return advice{Text: "Find the program that wrote these values. bsonids does not convert them."}
	case "mixed", "undetermined":
		if c.Mode != source.All {
			return advice{"Scan all documents. The report may then determine more.", command(c, "scan", "--all")}
		}
		if key == "mixed" {
			return advice{"Separate the documents by the program that wrote them: make a plan, and give each part a filter there.", planOf(c)}
		}
		return advice{"Find out the byte order from the program that wrote the values. Then make a plan, and decide there, with trust:", planOf(c)}
	case kinds.Generic:
		for _, e := range f.Evidence {
			if e.Verdict.Outcome == scan.Named && !e.Verdict.Convertible() {
				return advice{Text: "bsonids does not convert subtype 0 in this byte order."}
			}
		}
	}
	if f.Path == "_id" || strings.HasPrefix(f.Path, "_id.") {
		return advice{"_id cannot be changed in place. Make a plan, which copies the collection with all its values converted:", planOf(c)}
	}
	return advice{"Make a plan, which converts the field:", planOf(c)}
}

// planOf returns the command that makes the plan of a collection.
func planOf(c scan.Collection) string { return command(c, "plan", "migration.d") }

// command returns a command line about a collection.
func command(c scan.Collection, name string, args ...string) string {
	database, collection, _ := strings.Cut(c.Namespace, ".")
	return terminal.Command(slices.Concat([]string{"bsonids", name}, args, []string{"--db", database, "--collection", collection})...)
}

// summary is the beginning of the page.
type summary struct {
	Collections, WithUUIDs, Fields int
	Documents                      int64 // that were read
	Sampled                        bool  // not all documents were read
	Groups                         []counted
}

// counted is a group with the number of its fields, which is not zero.
type counted struct {
	group
	N int
}

// Fields returns the number of fields in words.
func (c counted) Fields() string {
	if c.N == 1 {
		return "1 field"
	}
	return fmt.Sprintf("%d fields", c.N)
}

func summarize(r scan.Report) summary {
	s := summary{Collections: len(r.Collections)}
	n := make(map[string]int)
	for _, c := range r.Collections {
		s.Documents += c.Scanned
		s.Sampled = s.Sampled || c.Mode != source.All
		if len(c.Fields) > 0 {
			s.WithUUIDs++
		}
		s.Fields += len(c.Fields)
		for _, f := range c.Fields {
			n[groupOf(f)]++
		}
	}
	for _, g := range groups {
		if n[g.Key] > 0 {
			s.Groups = append(s.Groups, counted{g, n[g.Key]})
		}
	}
	return s
}

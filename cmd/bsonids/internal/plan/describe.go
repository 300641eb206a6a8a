package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/duplicates"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// describe adds the comments about the plan as a whole: the order of the work, the files, how long
// it takes, and what was not read.
func (b *builder) describe(p *Plan) {
	note := func(format string, args ...any) { p.Comment = append(p.Comment, fmt.Sprintf(format, args...)) }
	note(headFirst+" of the database %s to standard, made by bsonids plan.", p.Database)
	option := "--write"
	if b.dump {
		option = "--out"
	}
	note("Review it, edit it, and run: bsonids apply DIR, with the directory of this file, first without and then with %s.", option)
	note("")
	sources := kinds.Where(func(k kinds.Kind) bool { return k.Name != kinds.Standard && k.Name != kinds.OfMalformed })
	note("decision  convert from X, with X one of %s;", strings.Join(kinds.Names(sources), ", "))
	note("          leave; or unknown, with which the plan cannot be applied; or list, for malformed values:")
	note("          they stay, and each run lists and counts them until you write leave")
	note("trust     true if you know the byte order of a field whose values do not tell it")
	if !b.dump {
		note("into      the new collection, for one whose _id is converted, and those that refer to each other with it:")
		note("          bsonids cutover exchanges all of them at one moment; the old one is not changed")
	}
	note("evidence  is compared when the plan is applied: do not edit it")
	note("")
	b.work(p, note)
	note("")
	b.time(note)
	if len(b.survey.NotRead) > 0 {
		note("")
		note("Not read:")
		for _, n := range b.survey.NotRead {
			note("  %s", n)
		}
	}
	if len(p.Only) > 0 {
		note("Only the collections named in only are in this plan; bsonids plan DIR --collection NAME adds one.")
	}
	note(headLast)
	b.missed(p)
}

// The beginning of the first line of the comment about the plan, and its last line.
const (
	headFirst = "A plan to convert the UUIDs"
	headLast  = "Collections without UUIDs are not listed."
)

// Duplicates notes in the comment about the plan which documents would get a unique value of another one.
func (p *Plan) Duplicates(r *duplicates.Report) {
	lines := r.Lines()
	if len(lines) == 0 {
		return
	}
	about := []string{duplicatesHead}
	for _, l := range lines {
		about = append(about, "  "+l)
	}
	p.Comment = slices.Insert(p.Comment, len(p.Comment)-1, append(about, "")...)
}

// duplicatesHead is the line before those about documents that would get a unique value of another one.
const duplicatesHead = "_id and unique indexes, after the conversion:"

// varying matches the lines of the comment about a plan that are not the same in each.
var varying = regexp.MustCompile(`^#( A plan to convert the UUIDs| group \d|   .+: \d+ fields? from |     .+\.skipped\.jsonl| It took \S+ to read| Nothing is to convert| The order of the work is| to each other are a group| Not read:| Only the collections named in only| ` + duplicatesHead + `|   .+ would get the value of another one|$)`)

// withHead replaces the comment about a plan in its text. Lines that a person has added to it stay, behind it.
// Nothing changes if a person has removed its first or its last line.
func withHead(text []byte, comment []string) []byte {
	lines := strings.Split(string(text), "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "# "+headFirst) })
	last := slices.Index(lines, "# "+headLast)
	key := slices.IndexFunc(lines, func(l string) bool { return l != "" && l[0] != '#' })
	if first < 0 || last < first || key < last {
		return text
	}
	head := commentLines(0, comment)
	added := slices.DeleteFunc(slices.Clone(lines[first:last]), func(l string) bool { return varying.MatchString(l) || slices.Contains(head, l) })
	return []byte(strings.Join(slices.Concat(lines[:first], head, added, lines[last+1:]), "\n"))
}

func (b *builder) work(p *Plan, note func(string, ...any)) {
	groups := p.Groups()
	if len(groups) == 0 {
		note("Nothing is to convert.")
		return
	}
	if b.dump {
		note("apply --out writes the converted dump. Values that it leaves are in %s, beside this file.", SkipFile)
		return
	}
	note("The order of the work is that of the collections in this file: move them to change it. Collections that refer")
	note("to each other are a group, and nothing else is begun between them. apply writes these files beside this one, if it leaves values,")
	note("and an undo log for each run that changes something:")
	for i, g := range groups {
		note("")
		note("group %d", i+1)
		for _, s := range g {
			how := "in place"
			if s.Into != "" {
				how = "into " + s.Into
			}
			var from []string
			for _, pair := range s.Pairs {
				from = append(from, terminal.Count(int64(len(pair.Fields)), "field")+" from "+pair.From)
			}
			note("  %s: %s, %s", s.Collection, strings.Join(from, ", "), how)
			note("    %s", s.SkipList(""))
		}
	}
}

// time says how long it took to read everything. How long the server takes for the writes is not known.
func (b *builder) time(note func(string, ...any)) {
	var took time.Duration
	var documents int64
	for _, c := range b.survey.Collections {
		took, documents = took+c.Took, documents+c.Documents
	}
	more := " apply reads them once more before it converts; bsonids status shows how long it still takes."
	if b.dump {
		more = ""
	}
	if documents > 0 {
		note("It took %s to read %d documents.%s", max(took.Round(time.Millisecond), time.Millisecond), documents, more)
	}
}

// missed describes which references the comparison may have missed.
func (b *builder) missed(p *Plan) {
	note := func(format string, args ...any) {
		p.ReferencesComment = append(p.ReferencesComment, fmt.Sprintf(format, args...))
	}
	if b.dump {
		note("Collections of a database that have the same UUIDs, in whatever byte order: convert both ends of a reference, or none.")
		return
	}
	note("Collections that have the same UUIDs, in whatever byte order. They are converted one after the other, because a value")
	note("that refers to another collection does not find its document while only one of them is converted. Add those that you know of:")
	note(`  - between: ["orders", "customers"]`)
	note("A plan that converts only one end of a reference cannot be applied, unless the reference has accepted: true.")
	if b.fewer > 0 {
		note("%d further references between these collections are not listed.", b.fewer)
	}
	if len(p.Only) == 0 {
		note("All values were compared: no reference by equal values was missed.")
		return
	}
	note("outside says how a collection stores these values that is not in this plan: bsonids plan DIR --collection NAME adds it.")
	note("All values of the collections of this plan were compared. Of others, these documents were searched for equal values:")
	for _, s := range b.survey.Samples {
		what := "all"
		switch least := source.Missed(s.Read, s.Of); {
		case !s.Random && s.Read < s.Of:
			what = "the first ones, because the server cannot sample: references in the others are not found"
		case least > 1:
			what = fmt.Sprintf("at random: references in fewer than %d documents are missed with a probability of more than 5 %%", least)
		}
		note("  %s: %d of %d, %s", s.Name, s.Read, s.Of, what)
	}
}

// Package scan counts the UUIDs of collections by field and by storage format, and says for those whose
// format does not specify the byte order what a conversion would do with them.
package scan

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// maxFields is the maximum number of fields of one collection that are distinguished, for
// collections whose field names are data. Fields whose first value is not a UUID use at most half
// of it.
const maxFields = 2000

// maxNames is the maximum size of their names together, in bytes.
const maxNames = 2 << 20

// Counts is how the values of a field are stored.
type Counts struct {
	Standard  int64 `json:"subtype4"`  // binary subtype 4 of 16 bytes
	Legacy    int64 `json:"subtype3"`  // binary subtype 3 of 16 bytes
	Generic   int64 `json:"subtype0"`  // binary subtype 0 of 16 bytes
	Text      int64 `json:"text"`      // string that is a UUID
	Malformed int64 `json:"malformed"` // binary subtype 3 or 4 of another length
	Other     int64 `json:"other"`     // any other value at the same path
	// Structs counts documents that a Go program without a codec wrote for a struct with a UUID:
	// {uuid: …} and {uuid: …, valid: …}. The values in them also count at their own paths.
	Structs int64 `json:"goStructs,omitempty"`
}

// uuids returns the number of values that are or may be UUIDs.
func (c Counts) uuids() int64 {
	return c.Standard + c.Legacy + c.Generic + c.Text + c.Malformed + c.Structs
}

// Scan reads documents of several collections. Its memory is bounded, whatever their number: it sorts the
// values on the disk. A Scan is not safe for concurrent use.
type Scan struct {
	survey     *decide.Survey
	apart      *decide.Survey // of samples; nil if there are none
	collectors []*Collector
	values     *spill.Sorter // nil unless fields are compared
	seen       []*seen       // by the numbers of the fields; nil for those that were forgotten
	dir        string
	now        time.Time
}

// decided are the kinds about which the values decide.
var decided = kinds.Where(func(k kinds.Kind) bool { return !k.BySubtype() })

// New returns a Scan whose temporary file is in the directory dir. The caller must close it.
func New(dir string, now time.Time) *Scan {
	s := &Scan{survey: newSurvey(dir, now), dir: dir, now: now}
	s.survey.Explain = true
	return s
}

func newSurvey(dir string, now time.Time) *decide.Survey {
	var questions []decide.Question
	for _, k := range decided {
		if !slices.ContainsFunc(questions, func(q decide.Question) bool { return q.Stored() == k.Stored() }) {
			questions = append(questions, decide.Question{Kind: k})
		}
	}
	return decide.NewSurvey(dir, now, questions...)
}

// Compare makes the Scan compare the values of all fields, for [Scan.References]. It is called before the
// first document. The values are in another temporary file in the directory dir.
func (s *Scan) Compare(dir string) { s.values = spill.New(dir) }

// Close removes the temporary files.
func (s *Scan) Close() error {
	err := s.survey.Close()
	if s.apart != nil {
		err = errors.Join(err, s.apart.Close())
	}
	if s.values != nil {
		err = errors.Join(err, s.values.Close())
	}
	return err
}

// Collector collects the contents of the documents of one collection. It is not safe for concurrent use.
type Collector struct {
	scan     *Scan
	database string
	surveyed *decide.Surveyed
	sample   bool
	fields   map[string]*field
	names    int // total size of the field names in bytes
	overflow bool
	name     []byte
}

// Collection returns the Collector for a collection.
func (s *Scan) Collection(database, collection string) (*Collector, error) {
	return s.collection(s.survey, database, collection, false)
}

// Sample returns the Collector for a collection of which a sample is read. Its values are compared with those
// of other collections, for [Scan.References], and are no evidence for any order: another sample would be
// another one.
func (s *Scan) Sample(database, collection string) (*Collector, error) {
	if s.apart == nil {
		s.apart = newSurvey(s.dir, s.now)
	}
	return s.collection(s.apart, database, collection, true)
}

func (s *Scan) collection(survey *decide.Survey, database, collection string, sample bool) (*Collector, error) {
	of, err := survey.Collection(database, collection, true)
	if err != nil {
		return nil, err
	}
	c := &Collector{scan: s, database: database, surveyed: of, sample: sample, fields: make(map[string]*field)}
	of.Each = c.value
	s.collectors = append(s.collectors, c)
	return c, nil
}

// Earlier sets the orders that earlier conversions have found, as [decide.Surveyed] has them.
func (c *Collector) Earlier(found map[string][]decide.Rival) { c.surveyed.Earlier = found }

// Add counts a document. The error wraps walk.ErrCorrupt, or is one of the temporary file.
func (c *Collector) Add(doc []byte) error { return c.surveyed.Add(doc) }

// Forget forgets the documents, which are read again.
func (c *Collector) Forget() {
	c.surveyed.Forget()
	for _, f := range c.fields {
		if c.scan.values != nil {
			c.scan.seen[f.number] = nil
		}
	}
	c.fields, c.names, c.overflow = make(map[string]*field), 0, false
}

// Drop forgets the collection.
func (s *Scan) Drop(c *Collector) {
	c.Forget()
	s.collectors = slices.DeleteFunc(s.collectors, func(o *Collector) bool { return o == c })
}

// Documents returns how many documents were added.
func (c *Collector) Documents() int64 { return c.surveyed.Documents() }

// Decisions returns, by the names of the kinds, the decisions about the values of the collection whose
// subtype does not determine the kind. It is called after [Scan.Judge].
func (c *Collector) Decisions() map[string]decide.Decision {
	decisions := make(map[string]decide.Decision)
	for _, k := range decided {
		decisions[k.Name] = *c.surveyed.Decision(k)
	}
	return decisions
}

type field struct {
	number uint64 // in Scan.seen
	counts Counts
	// text has the UUIDs in text, and text of 32 digits, which may be a checksum: it is in counts.Other
	// until Judge decides.
	text    formed
	structs formed // documents of Go structs
	odd     Odd
}

// Odd counts the values of a field whose names an update or a pattern cannot use: binary values of 16
// bytes, text that may be a UUID, or documents of Go structs.
type Odd struct {
	Unaddressable int64 // an update cannot address them
	Unnamable     int64 // of these, a pattern cannot select them
	Reason        error // about one of them
}

func (o *Odd) add(p *walk.Path) {
	err := p.Addressable()
	if err == nil {
		return
	}
	o.Unaddressable++
	if o.Reason == nil {
		o.Reason = err
	}
	if !p.Namable() {
		o.Unnamable++
	}
}

// isStruct reports whether a document is one that Structs counts.
func isStruct(l walk.Leaf) bool {
	// A document {uuid: X} has 32 bytes, and {uuid: X, valid: true} 40.
	if n := len(l.Value); n != 32 && n != 40 {
		return false
	}
	subtype, _, ok := bson.Raw(l.Value).Lookup("uuid").BinaryOK()
	if !ok || subtype != bson.TypeBinaryGeneric {
		return false
	}
	_, _, ok = kinds.ParseStruct(l.Value)
	return ok
}

func (c *Collector) value(p *walk.Path, l walk.Leaf) error {
	if l.Type == bson.TypeEmbeddedDocument && !isStruct(l) {
		return nil
	}
	c.name = p.AppendField(c.name[:0])
	f := c.fields[string(c.name)]
	if f == nil {
		// Names that are data, for example of fields with counters, must not displace fields with
		// UUIDs.
		most, octets := maxFields, maxNames
		if !mayBeUUID(l) {
			most, octets = maxFields/2, maxNames/2
		}
		if len(c.fields) >= most || c.names+len(c.name) > octets {
			c.overflow = true
			return nil
		}
		c.names += len(c.name)
		f = &field{number: uint64(len(c.scan.seen))}
		c.fields[string(c.name)] = f
		if c.scan.values != nil {
			c.scan.seen = append(c.scan.seen, &seen{End: End{c.surveyed.Namespace, string(c.name)}, database: c.database, field: f, sample: c.sample})
		}
	}
	if err := c.add(f, p, l); err != nil {
		return err
	}
	if subtype, data, _, ok := l.Binary(); ok && len(data) == 16 && (subtype == bson.TypeBinaryGeneric || subtype == bson.TypeBinaryUUIDOld || subtype == bson.TypeBinaryUUID) {
		f.odd.add(p)
	}
	return nil
}

func mayBeUUID(l walk.Leaf) bool {
	if text, ok := l.Text(); ok {
		_, ok = kinds.ParseText(text)
		return ok
	}
	return l.Type == bson.TypeBinary || l.Type == bson.TypeEmbeddedDocument
}

// add counts a value of a field.
func (c *Collector) add(f *field, p *walk.Path, l walk.Leaf) error {
	if l.Type == bson.TypeEmbeddedDocument {
		f.counts.Structs++
		f.structs.document(l)
		f.structs.odd.add(p)
		return nil
	}
	if text, ok := l.Text(); ok {
		s, ok := kinds.ParseText(text)
		if ok {
			f.text.odd.add(p)
		}
		switch {
		case ok && s.Certain:
			f.counts.Text++
			f.text.text(len(text))
			return c.compare(f, s.UUID, false)
		case ok:
			f.text.written.Digits++
			f.counts.Other++
			return c.compare(f, s.UUID, true)
		}
	}
	subtype, data, _, ok := l.Binary()
	switch {
	case ok && len(data) == 16:
		v := [16]byte(data)
		switch subtype {
		case bson.TypeBinaryUUID:
			f.counts.Standard++
			return c.compare(f, v, false)
		case bson.TypeBinaryUUIDOld:
			f.counts.Legacy++
			return c.compare(f, v, false)
		case bson.TypeBinaryGeneric:
			f.counts.Generic++
			return c.compare(f, v, false)
		}
	case ok && (subtype == bson.TypeBinaryUUID || subtype == bson.TypeBinaryUUIDOld):
		f.counts.Malformed++
		return nil
	}
	f.counts.Other++
	return nil
}

// Report is the result of a scan.
type Report struct {
	Server      string       `json:"server"` // hosts, without credentials
	Time        time.Time    `json:"time"`
	Collections []Collection `json:"collections"`
	Warnings    []string     `json:"warnings,omitempty"`
}

// Collection is the result of a scan for one collection.
type Collection struct {
	Namespace string      `json:"namespace"`
	Documents int64       `json:"documents"`           // approximate number, as the server reports it
	Scanned   int64       `json:"scanned"`             // number of documents that were read
	Mode      source.Mode `json:"mode"`                // which ones: all, sample, first
	Fields    []Field     `json:"fields"`              // fields with UUIDs, sorted by name
	Overflow  bool        `json:"overflow,omitempty"`  // there are more fields than are distinguished
	Malformed int64       `json:"malformed,omitempty"` // documents that are not valid BSON
}

// Field is the result of a scan for one path.
type Field struct {
	Path   string `json:"path"` // as walk.Path.AppendField writes it
	Counts Counts `json:"counts"`
	// Evidence is the evidence for subtypes 3 and 0, if there are values of them.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Forms is the evidence for text and for documents of Go structs, if there are any.
	Forms []FormEvidence `json:"forms,omitempty"`
	Odd   Odd            `json:"-"`
}

// Judge makes the report. It looks for equal values in all collections of a database. It is called once,
// after the last document. An error is one of the temporary file.
func (s *Scan) Judge() ([]Collection, error) {
	if err := s.survey.Decide(decided...); err != nil {
		return nil, err
	}
	if s.apart != nil {
		if err := s.apart.Decide(decided...); err != nil {
			return nil, err
		}
	}
	out := make([]Collection, 0, len(s.collectors))
	for _, c := range s.collectors {
		coll := Collection{Namespace: c.surveyed.Namespace, Scanned: c.Documents(), Overflow: c.overflow, Fields: []Field{}}
		for path, f := range c.fields {
			text, _ := c.surveyed.Found(kinds.OfText, path)
			f.judgeDigits(text)
			if f.counts.uuids() == 0 {
				continue
			}
			field := Field{Path: path, Counts: f.counts, Odd: f.odd}
			for subtype, n := range map[byte]int64{bson.TypeBinaryUUIDOld: f.counts.Legacy, bson.TypeBinaryGeneric: f.counts.Generic} {
				if found, ok := c.surveyed.Found(kinds.StoredAs(subtype), path); ok && n > 0 {
					field.Evidence = append(field.Evidence, newEvidence(subtype, found))
				}
			}
			slices.SortFunc(field.Evidence, func(a, b Evidence) int { return int(b.Subtype) - int(a.Subtype) })
			structs, _ := c.surveyed.Found(kinds.GoStruct, path)
			field.Forms = append(f.text.evidence(kinds.OfText, text), f.structs.evidence(kinds.GoStruct, structs)...)
			coll.Fields = append(coll.Fields, field)
		}
		slices.SortFunc(coll.Fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
		out = append(out, coll)
	}
	slices.SortFunc(out, func(a, b Collection) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out, nil
}

// judgeDigits counts the text of 32 digits as UUIDs if a conversion of text takes some of it for UUIDs.
func (f *field) judgeDigits(text decide.Found) {
	n := f.text.written.Digits
	if n == 0 {
		return
	}
	if len(text.Orders) > 0 && text.Orders[0].Decision != nil && len(text.Orders[0].Decision.Digits) > 0 {
		f.counts.Text += n
		f.counts.Other -= n
		return
	}
	f.text.written.Digits = 0
}

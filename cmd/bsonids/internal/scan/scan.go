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
	Malformed int64 `json:"malformed"` // binary subtype 3 or 4 that is no UUID: of another length, and not the text of one
	Other     int64 `json:"other"`     // any other value at the same path
	// Structs counts documents that a Go program without a codec wrote for a struct with a UUID:
	// {uuid: …} and {uuid: …, valid: …}. The values in them also count at their own paths.
	Structs int64 `json:"goStructs,omitempty"`
	// BinaryText counts binary values of subtype 0, 2, 3 or 4 whose bytes are the text of a UUID.
	BinaryText int64 `json:"binaryText,omitempty"`
	// Empty counts empty documents, if other documents of the collection have a UUID or an ObjectID at this path: a Go program
	// without a codec stores them for a struct whose UUID is private.
	Empty int64 `json:"emptyDocuments,omitempty"`
}

// of returns the count of the values that are stored so.
func (c *Counts) of(stored kinds.Stored) *int64 {
	switch stored {
	case kinds.Subtype4:
		return &c.Standard
	case kinds.Subtype3:
		return &c.Legacy
	case kinds.Subtype0:
		return &c.Generic
	case kinds.OfText:
		return &c.Text
	case kinds.GoStruct:
		return &c.Structs
	case kinds.OfBinaryText:
		return &c.BinaryText
	case kinds.OfMalformed:
		return &c.Malformed
	}
	return &c.Other
}

// Of returns the number of values that are stored so.
func (c Counts) Of(stored kinds.Stored) int64 { return *c.of(stored) }

// uuids returns the number of values that are or may be UUIDs.
func (c Counts) uuids() int64 {
	return c.Standard + c.Legacy + c.Generic + c.Text + c.Malformed + c.Structs + c.BinaryText
}

// Scan reads documents of several collections. Its memory is bounded, whatever their number: it sorts the
// values on the disk. A Scan is not safe for concurrent use.
type Scan struct {
	now        time.Time
	survey     *decide.Survey
	collectors []*Collector
	values     *spill.Sorter // nil unless fields are compared
	fields     []*field      // by number; nil for those that were forgotten
}

// New returns a Scan whose temporary files are in the directory dir. The caller must close it. If compare is set,
// the values of all fields are compared, for [Scan.References].
func New(dir string, now time.Time, compare bool) *Scan {
	s := &Scan{now: now, survey: decide.NewSurvey(dir, now)}
	if compare {
		s.values = spill.New(dir)
	}
	return s
}

// Close removes the temporary files.
func (s *Scan) Close() error {
	err := s.survey.Close()
	if s.values != nil {
		err = errors.Join(err, s.values.Close())
	}
	return err
}

// Collector collects the contents of the documents of one collection. It is not safe for concurrent use.
type Collector struct {
	*decide.Surveyed
	scan     *Scan
	database string
	sample   bool
	fields   map[string]*field
	names    int // total size of the field names in bytes
	overflow bool
	name     []byte
}

// field is a field of a collection, with the values at one path.
type field struct {
	End
	in       *Collector
	number   uint64
	counts   Counts
	values   []*decide.Values // by how they are stored
	forms    map[kinds.Stored]*formed
	odd      Odd
	empty    int64 // empty documents
	objects  int64 // ObjectIDs
	distinct int   // values that are compared
}

// Collection returns the Collector for a collection.
func (s *Scan) Collection(database, collection string) (*Collector, error) {
	return s.collection(database, collection, false)
}

// Sample returns the Collector for a collection of which a sample is read. Its values are compared with those
// of other collections, for [Scan.References], and are no evidence for any order: another sample would be
// another one.
func (s *Scan) Sample(database, collection string) (*Collector, error) {
	return s.collection(database, collection, true)
}

func (s *Scan) collection(database, collection string, sample bool) (*Collector, error) {
	group := database
	if sample {
		group += " sample" // the name of no database
	}
	of, err := s.survey.Collection(group, database+"."+collection)
	if err != nil {
		return nil, err
	}
	c := &Collector{Surveyed: of, scan: s, database: database, sample: sample, fields: make(map[string]*field)}
	s.collectors = append(s.collectors, c)
	return c, nil
}

// Add counts a document. The error wraps walk.ErrCorrupt, or is one of the temporary file.
func (c *Collector) Add(doc []byte) error {
	c.Documents++
	return walk.Documents(doc, func(p *walk.Path, l walk.Leaf) (bool, error) { return false, c.value(p, l) }, c.value)
}

// Forget forgets the documents, which are read again.
func (c *Collector) Forget() {
	c.Surveyed.Forget()
	for _, f := range c.fields {
		c.scan.fields[f.number] = nil
	}
	c.fields, c.names, c.overflow = make(map[string]*field), 0, false
}

// Drop forgets the collection.
func (s *Scan) Drop(c *Collector) {
	c.Forget()
	s.collectors = slices.DeleteFunc(s.collectors, func(o *Collector) bool { return o == c })
}

// Odd counts the values of a field whose names an update or a pattern cannot use: binary values of 16
// bytes or with the text of a UUID, text that may be a UUID, or documents of Go structs.
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

// emptyDocument is the size of a document without values.
const emptyDocument = 5

// value adds a value, or a document in a document.
func (c *Collector) value(p *walk.Path, l walk.Leaf) error {
	stored, u, ok := kinds.Read(l)
	empty := l.Type == bson.TypeEmbeddedDocument && len(l.Value) == emptyDocument
	if l.Type == bson.TypeEmbeddedDocument && !ok && !empty {
		return nil
	}
	c.name = p.AppendField(c.name[:0])
	f := c.field(ok || l.Type == bson.TypeBinary)
	if f == nil {
		if c.overflow = true; !ok {
			return nil
		}
		return c.Values(stored, decide.Others).Add(u)
	}
	if empty {
		f.empty++
		return nil
	}
	if !ok {
		if l.Type == bson.TypeObjectID {
			f.objects++
		}
		if kinds.IsMalformed(l) {
			f.counts.Malformed++
		} else {
			f.counts.Other++
		}
		return nil
	}
	f.count(p, l, stored, u)
	if err := f.of(stored).Add(u); err != nil || c.scan.values == nil || stored == kinds.GoStruct || kinds.Symmetric(&u.UUID) {
		return err
	}
	number := f.number << 1
	if !stored.IsBinary() && !u.Certain {
		number |= 1
	}
	return c.scan.values.Add(spill.Of(kinds.Canonical(u.UUID), number))
}

// field returns the field with the name that was written, or nil if there are too many. Names that are data, for
// example of fields with counters, must not displace fields with UUIDs.
func (c *Collector) field(mayBeUUID bool) *field {
	f := c.fields[string(c.name)]
	if f != nil {
		return f
	}
	most, octets := maxFields, maxNames
	if !mayBeUUID {
		most, octets = maxFields/2, maxNames/2
	}
	if len(c.fields) >= most || c.names+len(c.name) > octets {
		return nil
	}
	c.names += len(c.name)
	f = &field{End: End{c.Namespace, string(c.name)}, in: c, number: uint64(len(c.scan.fields))}
	c.fields[f.Path] = f
	c.scan.fields = append(c.scan.fields, f)
	return f
}

// has returns the values of the field that are stored so, or nil if there are none.
func (f *field) has(stored kinds.Stored) *decide.Values {
	for _, v := range f.values {
		if v.Stored == stored {
			return v
		}
	}
	return nil
}

// of is like has, and begins with no values if there are none yet.
func (f *field) of(stored kinds.Stored) *decide.Values {
	if v := f.has(stored); v != nil {
		return v
	}
	v := f.in.Values(stored, f.Path)
	f.values = append(f.values, v)
	return v
}

// count counts a value. Text of 32 digits, also in a binary value, may be a checksum: it is other data until Judge decides.
func (f *field) count(p *walk.Path, l walk.Leaf, stored kinds.Stored, u kinds.Spelled) {
	switch {
	case stored.IsBinary():
		f.odd.add(p)
	case stored == kinds.GoStruct && bson.Raw(l.Value).Lookup("uuid").Value[4] != bson.TypeBinaryGeneric: // its value was converted
		return
	default:
		if f.forms[stored] == nil {
			if f.forms == nil {
				f.forms = make(map[kinds.Stored]*formed)
			}
			f.forms[stored] = &formed{written: make(Written)}
		}
		f.forms[stored].odd.add(p)
		f.forms[stored].written[wayOf(l, u)]++
	}
	if !stored.IsBinary() && !u.Certain {
		f.counts.Other++
		return
	}
	*f.counts.of(stored)++
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
	// Decisions has, by the names of the kinds, the decisions about the values whose subtype does not determine the kind.
	Decisions map[string]decide.Decision `json:"-"`
}

// Field is the result of a scan for one path.
type Field struct {
	Path   string `json:"path"` // as walk.Path.AppendField writes it
	Counts Counts `json:"counts"`
	// Evidence is the evidence for subtypes 3 and 0, if there are values of them.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Forms is the evidence for text, documents of Go structs and text in binary values, if there are any.
	Forms []FormEvidence `json:"forms,omitempty"`
	Odd   Odd            `json:"-"`
}

// Decide makes the decisions, and returns the report. It looks for equal values in all collections of a database.
// It is called once, after the last document. An error is one of the temporary file.
func (s *Scan) Decide() ([]Collection, error) {
	if err := s.survey.Decide(); err != nil {
		return nil, err
	}
	out := make([]Collection, 0, len(s.collectors))
	for _, c := range s.collectors {
		out = append(out, c.result())
	}
	slices.SortFunc(out, func(a, b Collection) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out, nil
}

func (c *Collector) result() Collection {
	out := Collection{Namespace: c.Namespace, Scanned: c.Documents, Overflow: c.overflow, Fields: []Field{}, Decisions: make(map[string]decide.Decision)}
	for _, k := range kinds.All() {
		if !k.BySubtype() {
			out.Decisions[k.Name] = c.Decision(k)
		}
	}
	for _, f := range c.fields {
		field := Field{Path: f.Path, Odd: f.odd}
		for _, subtype := range []byte{bson.TypeBinaryUUIDOld, bson.TypeBinaryGeneric} {
			if v := f.has(kinds.StoredAs(subtype)); v != nil {
				field.Evidence = append(field.Evidence, newEvidence(subtype, v.Found(), c.scan.now))
			}
		}
		for _, stored := range []kinds.Stored{kinds.OfText, kinds.GoStruct, kinds.OfBinaryText} {
			form := f.forms[stored]
			if form == nil {
				continue
			}
			found := f.has(stored).Found()
			if n := form.written[digits]; n > 0 && len(found.Orders[0].Decision.Digits) > 0 { // a conversion takes some of it for UUIDs
				*f.counts.of(stored) += n
				f.counts.Other -= n
			} else {
				delete(form.written, digits)
			}
			if form.written.Sum() > 0 {
				field.Forms = append(field.Forms, form.evidence(stored, found))
			}
		}
		if f.counts.uuids() > 0 || f.objects > 0 {
			f.counts.Empty = f.empty
		}
		if field.Counts = f.counts; f.counts.uuids() > 0 || f.counts.Empty > 0 {
			out.Fields = append(out.Fields, field)
		}
	}
	slices.SortFunc(out.Fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return out
}

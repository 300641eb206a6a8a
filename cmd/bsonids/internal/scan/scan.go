// Package scan counts the UUIDs of collections by field and by storage format, and determines the
// byte order of those whose format does not specify it.
package scan

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
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

// Collector collects the contents of the documents of one collection. Its memory is bounded,
// whatever the number of documents. It is not safe for concurrent use.
type Collector struct {
	namespace string
	documents int64
	fields    map[string]*field
	names     int // total size of the field names in bytes
	overflow  bool
	name      []byte
}

type field struct {
	counts Counts
	// Sketches of the distinct values, each created with its first value.
	legacy, generic *sketch // as stored
	reference       *sketch // UUIDs of subtype 4 and text, whose order is known
	// Text of 32 digits, which may be a checksum. It is in counts.Other until Judge decides, which
	// removes the values if they are not UUIDs.
	digits      *sketch
	digitsCount int64
	text        formed // UUIDs in text, also those of reference
	structs     formed // documents of Go structs
	odd         Odd
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

// NewCollector returns a Collector for a collection named database.collection.
func NewCollector(namespace string) *Collector {
	return &Collector{namespace: namespace, fields: make(map[string]*field)}
}

// Add counts a document. The error wraps walk.ErrCorrupt.
func (c *Collector) Add(doc []byte) error {
	c.documents++
	return walk.Documents(doc, func(p *walk.Path, l walk.Leaf) (bool, error) {
		if !isStruct(l) {
			return false, nil
		}
		return false, c.value(p, l)
	}, c.value)
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

// Documents returns how many documents were added.
func (c *Collector) Documents() int64 { return c.documents }

func (c *Collector) value(p *walk.Path, l walk.Leaf) error {
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
		f = new(field)
		c.fields[string(c.name)] = f
	}
	f.add(p, l)
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

func (f *field) add(p *walk.Path, l walk.Leaf) {
	if l.Type == bson.TypeEmbeddedDocument {
		f.counts.Structs++
		f.structs.document(l)
		f.structs.odd.add(p)
		return
	}
	if text, ok := l.Text(); ok {
		s, ok := kinds.ParseText(text)
		if ok {
			f.text.odd.add(p)
		}
		switch {
		case ok && s.Certain:
			f.counts.Text++
			keep(&f.reference, s.UUID)
			f.text.text(s, len(text))
			return
		case ok:
			f.digitsCount++
			keep(&f.digits, s.UUID)
		}
	}
	subtype, data, _, ok := l.Binary()
	switch {
	case ok && len(data) == 16:
		v := [16]byte(data)
		switch subtype {
		case bson.TypeBinaryUUID:
			f.counts.Standard++
			keep(&f.reference, v)
			return
		case bson.TypeBinaryUUIDOld:
			f.counts.Legacy++
			keep(&f.legacy, v)
			return
		case bson.TypeBinaryGeneric:
			f.counts.Generic++
			keep(&f.generic, v)
			return
		}
	case ok && (subtype == bson.TypeBinaryUUID || subtype == bson.TypeBinaryUUIDOld):
		f.counts.Malformed++
		return
	}
	f.counts.Other++
}

func keep(s **sketch, v [16]byte) {
	if *s == nil {
		*s = new(sketch)
	}
	(*s).add(v)
}

// TextUUID parses a UUID with hyphens, plain, in braces or as a URN. It rejects 32 digits without
// hyphens, which may also be a checksum.
func TextUUID(text []byte) (uuid.UUID, bool) {
	s, ok := kinds.ParseText(text)
	return s.UUID, ok && s.Certain
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
	Namespace string  `json:"namespace"`
	Documents int64   `json:"documents"`           // approximate number, as the server reports it
	Scanned   int64   `json:"scanned"`             // number of documents that were read
	Mode      Mode    `json:"mode"`                // which ones: all, sample, first
	Fields    []Field `json:"fields"`              // fields with UUIDs, sorted by name
	Overflow  bool    `json:"overflow,omitempty"`  // there are more fields than are distinguished
	Malformed int64   `json:"malformed,omitempty"` // documents that are not valid BSON
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

// Judge makes the report from the collectors. It looks for references in all of them.
func Judge(collectors []*Collector, now time.Time) []Collection {
	refs := newReferences(collectors)
	out := make([]Collection, 0, len(collectors))
	for _, c := range collectors {
		coll := Collection{Namespace: c.namespace, Scanned: c.documents, Overflow: c.overflow, Fields: []Field{}}
		for path, f := range c.fields {
			f.judgeDigits(now)
			if f.counts.uuids() == 0 {
				continue
			}
			field := Field{Path: path, Counts: f.counts, Odd: f.odd}
			if f.legacy != nil {
				field.Evidence = append(field.Evidence, judge(bson.TypeBinaryUUIDOld, f.counts.Legacy, f.legacy, refs, now))
			}
			if f.generic != nil {
				field.Evidence = append(field.Evidence, judge(bson.TypeBinaryGeneric, f.counts.Generic, f.generic, refs, now))
			}
			name := c.namespace + " " + path
			field.Forms = append(f.text.evidence("text", name, refs), f.structs.evidence("goStruct", name, refs)...)
			coll.Fields = append(coll.Fields, field)
		}
		slices.SortFunc(coll.Fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
		out = append(out, coll)
	}
	slices.SortFunc(out, func(a, b Collection) int { return strings.Compare(a.Namespace, b.Namespace) })
	return out
}

// judgeDigits counts the text of 32 digits as UUIDs if the variants and versions show that it is.
func (f *field) judgeDigits(now time.Time) {
	if f.digits == nil || f.digitsCount == 0 {
		return
	}
	e := judge(bson.TypeBinaryGeneric, f.digitsCount, f.digits, newReferences(nil), now)
	if e.Verdict.Outcome == Named && e.Verdict.Order == Network {
		f.counts.Text += f.digitsCount
		f.counts.Other -= f.digitsCount
		f.text.digits(f.digitsCount, f.digits)
	} else {
		f.digits = nil
	}
	f.digitsCount = 0
}

// references holds the ids whose byte order is known, and the fields that contain them.
type references struct {
	names  []string
	limits []uint64
	ids    map[[16]byte][]int32 // the fields, by number
}

func newReferences(collectors []*Collector) *references {
	r := &references{ids: make(map[[16]byte][]int32)}
	for _, c := range collectors {
		for path, f := range c.fields {
			if f.reference == nil {
				continue
			}
			n := int32(len(r.names))
			r.names = append(r.names, c.namespace+" "+path)
			r.limits = append(r.limits, f.reference.limit())
			for _, e := range f.reference.entries {
				if !symmetric(e.value) {
					r.ids[e.value] = append(r.ids[e.value], n)
				}
			}
		}
	}
	return r
}

// comparable returns how many of the values in s, without those that are the same in every order,
// would be in the sketch of field n if the field had them.
func (r *references) comparable(s *sketch, n int32) int {
	limit := min(r.limits[n], s.limit())
	count := 0
	for _, e := range s.entries {
		if (e.hash < limit || limit == math.MaxUint64) && !symmetric(e.value) {
			count++
		}
	}
	return count
}

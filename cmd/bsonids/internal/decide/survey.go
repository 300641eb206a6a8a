package decide

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// maxFields is the maximum number of fields of a collection that are distinguished, for collections
// whose field names are data. All other fields share the decision of Others.
const maxFields = 2000

// Question describes values about which a decision is to be made: those that are stored as Kind says, in
// whatever byte order.
type Question struct {
	kinds.Kind
	Wanted func(*walk.Path) bool // selects fields; nil selects all
	// Trusted lists the fields whose order the user vouches for, as walk.Path.AppendField writes
	// them, with or without brackets.
	Trusted []string
}

// Survey makes the decisions of several collections at once. It reads every document of every collection
// once, in any order, and sorts the values on the disk, so that its memory does not grow with their
// number. Values of the collections of one database are compared with each other. A Survey is not safe
// for concurrent use.
type Survey struct {
	// Explain is set before the first document to find out in which fields there are values equal to
	// those of other fields, for [Surveyed.Found].
	Explain bool

	questions []Question
	answers   []int // the number of answers to each question
	order     bool  // one of the questions is about an order
	structs   bool  // one of the questions is about documents
	now       time.Time
	values    *spill.Sorter
	databases map[string]uint64
	fields    []*surveyed  // by number; nil for those that were forgotten
	others    []*Elsewhere // by number; nil for those that were forgotten
	sources   []string     // fields with UUIDs whose order is known, by number
	known     bool         // there are UUIDs whose order is known
	all       []*Surveyed
	name      []byte
	plain     []byte
}

// surveyed holds the values of a field of a converted collection that are stored in one way.
type surveyed struct {
	tally
	spelled  spelled // if the values are not binary
	path     string
	number   uint64
	in       *Surveyed
	question *Question
	answers  []answer
	equals   [orders]matches
}

// answer is the decision about a field for one kind.
type answer struct {
	Field
	from           int
	rule           rule
	equal, against [][]byte
	waiting        int64 // values that are converted in another field, and not here
}

// Surveyed is a collection of a Survey.
type Surveyed struct {
	Namespace string
	// Each, which may be nil, is called for each value and each document in a document. An error of it
	// ends Add.
	Each func(*walk.Path, walk.Leaf) error
	// Earlier lists, by field, the orders that earlier conversions of the collection have found in values of
	// subtype 3, the only one with several. The names are those of [Decision.Found].
	Earlier map[string][]Rival

	survey    *Survey
	database  uint64
	documents int64
	converted bool
	fields    []map[string]*surveyed // by the number of the question
	others    map[string]uint64
	sources   map[string]uint64
}

// NewSurvey returns a Survey with the questions, which are about values that are stored differently. Its
// temporary file is in the directory dir. The caller must close it.
func NewSurvey(dir string, now time.Time, questions ...Question) *Survey {
	s := &Survey{questions: questions, now: now, values: spill.New(dir), databases: make(map[string]uint64)}
	for _, q := range questions {
		s.order = s.order || q.IsBinary() && !q.BySubtype()
		s.structs = s.structs || q.Form == kinds.Struct
	}
	return s
}

// Close removes the temporary file.
func (s *Survey) Close() error { return s.values.Close() }

// errDatabases is returned for a dump of more databases than a record can number.
var errDatabases = errors.New("there are more than 65,536 databases")

// Collection adds a collection. If converted is not set, its values are only compared with others.
func (s *Survey) Collection(database, collection string, converted bool) (*Surveyed, error) {
	if _, ok := s.databases[database]; !ok {
		if len(s.databases) == 1<<16 {
			return nil, errDatabases
		}
		s.databases[database] = uint64(len(s.databases))
	}
	c := &Surveyed{Namespace: database + "." + collection, survey: s, database: s.databases[database], converted: converted}
	c.Forget()
	s.all = append(s.all, c)
	return c, nil
}

// Forget forgets the documents of the collection, which is read again. UUIDs of known order stay known.
func (c *Surveyed) Forget() {
	for _, fields := range c.fields {
		for _, f := range fields {
			c.survey.fields[f.number] = nil
		}
	}
	for _, n := range c.others {
		c.survey.others[n] = nil
	}
	c.documents, c.others, c.sources = 0, make(map[string]uint64), make(map[string]uint64)
	c.fields = make([]map[string]*surveyed, len(c.survey.questions))
	for i := range c.fields {
		c.fields[i] = make(map[string]*surveyed)
	}
}

// Documents returns the number of documents that were added.
func (c *Surveyed) Documents() int64 { return c.documents }

// The records of the sorter have a value, as it is stored, and in the last number the database (16
// bits), what has the value (8 bits), and its number (40 bits).
const (
	isKnown   = iota << 40 // a UUID of known order; the number is that of its source and of the order in which it is read
	isField                // of a value that is not binary: one that may be something else than a UUID
	isSpelled              // a value that is not binary, and that nothing but a UUID is written like
	isOther
	kindMask   = 0xff << 40
	numberMask = 1<<40 - 1
)

func (c *Surveyed) emit(v [16]byte, kind, number uint64) error {
	return c.survey.values.Add(spill.Record{binary.BigEndian.Uint64(v[:8]), binary.BigEndian.Uint64(v[8:]), c.database<<48 | kind | number})
}

// Add counts a document. The error wraps walk.ErrCorrupt, or is one of the temporary file.
func (c *Surveyed) Add(doc []byte) error {
	c.documents++
	if !c.survey.structs {
		return walk.Document(doc, c.value)
	}
	return walk.Documents(doc, func(p *walk.Path, l walk.Leaf) (bool, error) { return false, c.value(p, l) }, c.value)
}

func (c *Surveyed) value(path *walk.Path, l walk.Leaf) (err error) {
	switch l.Type {
	case bson.TypeBinary:
		err = c.binary(path, l)
	case bson.TypeString, bson.TypeEmbeddedDocument:
		err = c.formed(path, l)
	}
	if err != nil || c.Each == nil {
		return err
	}
	return c.Each(path, l)
}

// binary adds a binary value.
func (c *Surveyed) binary(path *walk.Path, l walk.Leaf) error {
	subtype, data, _, ok := l.Binary()
	if !ok || len(data) != 16 {
		return nil
	}
	if c.survey.order && subtype == bson.TypeBinaryUUID {
		if err := c.knows(path, [16]byte(data)); err != nil {
			return err
		}
	}
	for i := range c.survey.questions {
		if q := &c.survey.questions[i]; q.Form == kinds.Binary && q.Subtype == subtype {
			return c.asked(i, path, [16]byte(data), isField, true)
		}
	}
	return nil
}

// formed adds a value that is not binary.
func (c *Surveyed) formed(path *walk.Path, l walk.Leaf) error {
	if c.survey.order && l.Type == bson.TypeString {
		if text, ok := l.Text(); ok {
			if s, ok := kinds.ParseText(text); ok && s.Certain {
				if err := c.knows(path, s.UUID); err != nil {
					return err
				}
			}
		}
	}
	for i := range c.survey.questions {
		q := &c.survey.questions[i]
		if n := len(l.Value); q.Form == kinds.Struct && q.Wanted == nil && n != 32 && n != 40 { // no document of the form has another size
			continue
		}
		if !q.Form.Applies(l) {
			continue
		}
		s, _, ok := q.Form.Parse(l)
		kind := uint64(isField)
		if s.Certain {
			kind = isSpelled
		}
		return c.asked(i, path, s.UUID, kind, ok)
	}
	return nil
}

// asked adds a value that the question with the number i is about. ok is set if it may be a UUID.
func (c *Surveyed) asked(i int, path *walk.Path, v [16]byte, kind uint64, ok bool) error {
	q := &c.survey.questions[i]
	if !c.converted || q.Wanted != nil && !q.Wanted(path) {
		if !ok {
			return nil
		}
		return c.other(path, v)
	}
	if !ok && q.Wanted == nil { // nobody asks about the field
		return nil
	}
	f := c.field(i, q, path)
	if !ok {
		return nil
	}
	f.values++
	return c.emit(v, kind, f.number)
}

// other adds a value of a field that is not converted.
func (c *Surveyed) other(path *walk.Path, v [16]byte) error {
	s := c.survey
	s.name = path.AppendField(s.name[:0])
	n, ok := c.others[string(s.name)]
	if !ok {
		if len(c.others) >= maxFields {
			return nil
		}
		n = uint64(len(s.others))
		s.others = append(s.others, &Elsewhere{Namespace: c.Namespace, Path: string(s.name)})
		c.others[string(s.name)] = n
	}
	return c.emit(v, isOther, n)
}

// field returns the field that the value at the path belongs to.
func (c *Surveyed) field(i int, q *Question, path *walk.Path) *surveyed {
	s, fields := c.survey, c.fields[i]
	s.name = path.AppendField(s.name[:0])
	s.plain = appendPlain(s.plain[:0], s.name)
	f := fields[string(s.plain)]
	if f == nil {
		plain, name := string(s.plain), string(s.name)
		if len(fields) >= maxFields {
			plain, name = Others, Others
		}
		if f = fields[plain]; f == nil {
			f = &surveyed{path: name, number: uint64(len(s.fields)), in: c, question: q}
			s.fields = append(s.fields, f)
			fields[plain] = f
		}
	}
	return f
}

// knows adds a UUID whose order is known.
func (c *Surveyed) knows(path *walk.Path, u [16]byte) error {
	if kinds.Symmetric(&u) {
		return nil
	}
	s := c.survey
	s.known = true
	source := uint64(0)
	if s.Explain {
		source = c.source(path)
	}
	for o := range orders {
		if err := c.emit(representations[o].Permute(u), isKnown, source*orders+uint64(o)); err != nil {
			return err
		}
	}
	return nil
}

// source returns the number of the field at the path.
func (c *Surveyed) source(path *walk.Path) uint64 {
	s := c.survey
	s.name = path.AppendField(s.name[:0])
	n, ok := c.sources[string(s.name)]
	if !ok {
		name := string(s.name)
		if len(c.sources) >= maxFields {
			name = Others
		}
		if n, ok = c.sources[name]; !ok {
			n = uint64(len(s.sources))
			s.sources = append(s.sources, c.Namespace+" "+name)
			c.sources[name] = n
		}
	}
	return n
}

// Plain returns a field name without the brackets of arrays. Elements of an array belong to the same
// field as single values.
func Plain(path string) string { return strings.ReplaceAll(path, "[]", "") }

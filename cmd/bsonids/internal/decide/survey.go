package decide

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Survey makes the decisions of several collections at once, by the rules of a Pass. It reads every
// document of every collection once, in any order, and sorts the values on the disk, so that its
// memory does not grow with their number. Values of the collections of one database are compared
// with each other. A Survey is not safe for concurrent use.
type Survey struct {
	Question
	now       time.Time
	values    *spill.Sorter
	databases map[string]uint64
	fields    []*surveyed  // by number
	others    []*Elsewhere // by number
	known     bool         // there are UUIDs whose order is known
	all       []*Surveyed
	name      []byte
	plain     []byte
}

// surveyed is a field of a converted collection.
type surveyed struct {
	field
	in             *Surveyed
	decision       *Field
	rule           rule
	equal, against [][]byte
	waiting        int64 // values that are converted in a field of another collection, and not here
}

// Surveyed is a collection of a Survey.
type Surveyed struct {
	Namespace string
	survey    *Survey
	database  uint64
	documents int64
	converted bool
	fields    map[string]*surveyed
	others    map[string]uint64
}

// NewSurvey returns a new Survey, whose temporary file is in the directory dir. The caller must close
// it. The Query of the question is ignored.
func NewSurvey(q Question, dir string, now time.Time) *Survey {
	return &Survey{Question: q, now: now, values: spill.New(dir), databases: make(map[string]uint64)}
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
	c := &Surveyed{Namespace: database + "." + collection, survey: s, database: s.databases[database], converted: converted,
		fields: make(map[string]*surveyed), others: make(map[string]uint64)}
	s.all = append(s.all, c)
	return c, nil
}

// The records of the sorter have a value, as it is stored, and in the last number the database (16
// bits), what has the value (8 bits), and its number (32 bits).
const (
	isKnown   = iota << 40 // a UUID of known order; the number is the order in which it is read
	isField                // of a value that is not binary: one that may be something else than a UUID
	isSpelled              // a value that is not binary, and that nothing but a UUID is written like
	isOther
	kindMask   = 0xff << 40
	numberMask = 1<<32 - 1
)

func (c *Surveyed) emit(v [16]byte, kind, number uint64) error {
	return c.survey.values.Add(spill.Record{binary.BigEndian.Uint64(v[:8]), binary.BigEndian.Uint64(v[8:]), c.database<<48 | kind | number})
}

// Add counts a document. The error wraps walk.ErrCorrupt, or is one of the temporary file.
func (c *Surveyed) Add(doc []byte) error {
	c.documents++
	return c.survey.Form.Walk(doc, nil, c.value)
}

// selects reports whether the field at the path may be converted.
func (s *Survey) selects(path *walk.Path) bool { return s.Wanted == nil || s.Wanted(path) }

func (c *Surveyed) value(path *walk.Path, l walk.Leaf) error {
	s := c.survey
	if s.Form != kinds.Binary {
		return c.formed(path, l)
	}
	if text, ok := l.Text(); ok {
		if u, ok := scan.TextUUID(text); ok && s.Subtype != bson.TypeBinaryUUID {
			return c.knows(u)
		}
		return nil
	}
	subtype, data, _, ok := l.Binary()
	switch {
	case !ok || len(data) != 16:
		return nil
	case subtype == bson.TypeBinaryUUID && s.Subtype != subtype:
		return c.knows([16]byte(data))
	case subtype != s.Subtype:
		return nil
	}
	v := [16]byte(data)
	if !c.converted || !s.selects(path) {
		return c.other(path, v)
	}
	f := c.field(path)
	f.values++
	return c.emit(v, isField, uint64(f.number))
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
func (c *Surveyed) field(path *walk.Path) *surveyed {
	s := c.survey
	s.name = path.AppendField(s.name[:0])
	s.plain = appendPlain(s.plain[:0], s.name)
	f := c.fields[string(s.plain)]
	if f == nil {
		plain, name := string(s.plain), string(s.name)
		if len(c.fields) >= maxFields {
			plain, name = Others, Others
		}
		if f = c.fields[plain]; f == nil {
			f = &surveyed{field: field{path: name, number: uint32(len(s.fields))}, in: c}
			s.fields = append(s.fields, f)
			c.fields[plain] = f
		}
	}
	return f
}

// knows adds a UUID whose order is known.
func (c *Surveyed) knows(u [16]byte) error {
	if symmetric(&u) {
		return nil
	}
	c.survey.known = true
	for o := range orders {
		if err := c.emit(representations[o].Permute(u), isKnown, uint64(o)); err != nil {
			return err
		}
	}
	return nil
}

// sharers is what has one value in one database.
type sharers struct {
	value   [16]byte
	known   uint8 // bit o is set if it is a known UUID in order o
	fields  []*surveyed
	spelled []*surveyed
	others  []*Elsewhere
}

// groups calls visit for each value of each database.
func (s *Survey) groups(visit func(*sharers)) error {
	var g sharers
	var last spill.Record
	done := func() {
		if len(g.fields)+len(g.spelled) > 0 {
			binary.BigEndian.PutUint64(g.value[:8], last[0])
			binary.BigEndian.PutUint64(g.value[8:], last[1])
			visit(&g)
		}
		g.known, g.fields, g.spelled, g.others = 0, g.fields[:0], g.spelled[:0], g.others[:0]
	}
	err := s.values.Each(func(r spill.Record) error {
		if r[0] != last[0] || r[1] != last[1] || r[2]>>48 != last[2]>>48 {
			done()
			last = r
		}
		switch n := r[2] & numberMask; r[2] & kindMask {
		case isKnown:
			g.known |= 1 << n
		case isField:
			g.fields = append(g.fields, s.fields[n])
		case isSpelled:
			g.spelled = append(g.spelled, s.fields[n])
		case isOther:
			g.others = append(g.others, s.others[n])
		}
		return nil
	})
	done()
	return err
}

// Decide returns the decisions of the converted collections, by namespace, and the trusted fields
// that have no value in any of them.
func (s *Survey) Decide() (decisions map[string]*Decision, unknown []string, err error) {
	if err := s.groups(func(g *sharers) {
		for _, f := range g.fields {
			f.add(g.value, s.now)
		}
		for _, f := range g.spelled {
			f.spelled.add(g.value)
		}
	}); err != nil {
		return nil, nil, err
	}
	from := orderOf(s.Order)
	met := make(map[string]bool)
	for _, c := range s.all {
		for plain, f := range c.fields {
			trusted := slices.ContainsFunc(s.Trusted, func(t string) bool { return strings.ReplaceAll(t, "[]", "") == plain })
			one := f.decided(s.Question, from, trusted, nil)
			f.decision, f.rule = &one, one.compile(from, s.Subtype)
			met[plain] = true
		}
	}
	if s.known || len(s.others) > 0 || len(s.fields) > 1 {
		if err := s.groups(func(g *sharers) { s.compare(g, from) }); err != nil {
			return nil, nil, err
		}
	}
	decisions = make(map[string]*Decision)
	for _, c := range s.all {
		if c.converted {
			decisions[c.Namespace] = c.decide()
		}
	}
	for _, t := range s.Trusted {
		if !met[strings.ReplaceAll(t, "[]", "")] {
			unknown = append(unknown, t)
		}
	}
	return decisions, unknown, nil
}

// compare finds what the equality of the values of a group changes.
func (s *Survey) compare(g *sharers, from int) {
	if symmetric(&g.value) {
		return
	}
	for _, e := range g.others {
		e.Equal++
	}
	if s.Form != kinds.Binary { // each value shows by itself whether it is a UUID
		return
	}
	versions := read(&g.value)
	proven, trusted := false, false
	for _, f := range g.fields {
		allowed := f.rule.allows(versions, from)
		proven = proven || allowed && f.decision.Basis == Evidence
		trusted = trusted || allowed
	}
	for _, f := range g.fields {
		in := g.known
		if proven && f.decision.Basis == None {
			in |= 1 << from
		}
		allowed := f.rule.allows(versions, from)
		switch {
		case in == 1<<from && !allowed:
			if len(f.equal) <= MaxEqual {
				f.equal = append(f.equal, slices.Clone(g.value[:]))
			}
		case in>>from&1 == 0 && in != 0 && allowed:
			if len(f.against) <= MaxEqual {
				f.against = append(f.against, slices.Clone(g.value[:]))
			}
		case trusted && !allowed && in == 0 && f.decision.Basis == None:
			f.waiting++
		}
	}
}

// decide returns the decision of a collection.
func (c *Surveyed) decide() *Decision {
	s := c.survey
	d := &Decision{Subtype: s.Subtype, From: s.Name, Made: s.now.UTC().Truncate(time.Second), Documents: c.documents, Trusted: s.Trusted, Fields: []Field{}}
	room := MaxEqual
	for _, f := range slices.SortedFunc(maps.Values(c.fields), func(a, b *surveyed) int { return strings.Compare(a.path, b.path) }) {
		f.decision.settle(f.equal, f.against, &room)
		d.Fields = append(d.Fields, *f.decision)
	}
	return d
}

// Elsewhere returns the fields that are not converted and have values equal to those of fields that
// are.
func (s *Survey) Elsewhere() []Elsewhere {
	var out []Elsewhere
	for _, e := range s.others {
		if e.Equal > 0 {
			out = append(out, *e)
		}
	}
	for _, f := range s.fields {
		if f.waiting > 0 && !f.decision.Converted() {
			out = append(out, Elsewhere{Namespace: f.in.Namespace, Path: f.path, Equal: f.waiting})
		}
	}
	slices.SortFunc(out, func(a, b Elsewhere) int { return strings.Compare(a.Namespace+" "+a.Path, b.Namespace+" "+b.Path) })
	return out
}

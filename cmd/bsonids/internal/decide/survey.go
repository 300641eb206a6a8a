package decide

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
)

// Survey makes the decisions of several collections at once: about all values whose kind is not determined
// by how they are stored. It takes every value of every collection once, in any order, and sorts them on the
// disk, so that its memory does not grow with their number. Values of the collections of one group are
// compared with each other. A Survey is not safe for concurrent use.
type Survey struct {
	now         time.Time
	values      *spill.Sorter
	groups      map[string]uint64
	fields      []*Values // by number; nil for those that were forgotten
	collections []*Surveyed
}

// Surveyed is a collection of a Survey.
type Surveyed struct {
	Namespace string
	Documents int64 // that were read
	// Earlier lists, by field, the orders that earlier conversions of the collection have found in values of
	// subtype 3, the only one with several. The names are those of [Decision.Found].
	Earlier map[string][]Rival

	survey *Survey
	group  uint64
	fields map[kinds.Stored]map[string]*Values // by the names without brackets
}

// Values are the values of a field that are stored in one way.
type Values struct {
	Stored kinds.Stored

	tally
	spelled spelled // those that nothing but a UUID is written like
	kinds   []kinds.Kind
	path    string
	number  uint64
	in      *Surveyed
	answers []answer // for each of the kinds
	equals  [orders]matches
	only    [orders]int64 // distinct values that are a UUID of known order in this order alone, against which their bits say nothing
}

// answer is the decision about a field for one kind.
type answer struct {
	Field
	kind           kinds.Kind
	bit            int // the number of the kind
	from           int
	rule           rule
	alone          *tally // of the values that do not fit, if they may show another order
	equal, against [][]byte
}

// NewSurvey returns a Survey. Its temporary file is in the directory dir. The caller must close it.
func NewSurvey(dir string, now time.Time) *Survey {
	return &Survey{now: now, values: spill.New(dir), groups: make(map[string]uint64)}
}

// Close removes the temporary file.
func (s *Survey) Close() error { return s.values.Close() }

// errGroups is returned for a dump of more databases than a record can number.
var errGroups = errors.New("there are more than 65,536 databases")

// Collection adds a collection to a group, which is that of a database.
func (s *Survey) Collection(group, namespace string) (*Surveyed, error) {
	if _, ok := s.groups[group]; !ok {
		if len(s.groups) == 1<<16 {
			return nil, errGroups
		}
		s.groups[group] = uint64(len(s.groups))
	}
	c := &Surveyed{Namespace: namespace, survey: s, group: s.groups[group]}
	c.Forget()
	s.collections = append(s.collections, c)
	return c, nil
}

// Forget forgets the documents of the collection, which is read again.
func (c *Surveyed) Forget() {
	for _, fields := range c.fields {
		for _, f := range fields {
			c.survey.fields[f.number] = nil
		}
	}
	c.Documents, c.fields = 0, make(map[kinds.Stored]map[string]*Values)
}

// Values returns the values of the field with the name, as walk.Path.AppendField writes it, or of Others. Elements of
// an array belong to the same field as single values. The caller bounds the number of fields.
func (c *Surveyed) Values(stored kinds.Stored, name string) *Values {
	fields := c.fields[stored]
	if fields == nil {
		fields = make(map[string]*Values)
		c.fields[stored] = fields
	}
	plain := Plain(name)
	f := fields[plain]
	if f == nil {
		f = &Values{Stored: stored, kinds: slices.DeleteFunc(stored.Kinds(), kinds.Kind.BySubtype), path: name, number: uint64(len(c.survey.fields)), in: c}
		c.survey.fields = append(c.survey.fields, f)
		fields[plain] = f
	}
	return f
}

// The records of the sorter have a value, as it is stored, and a number of the group (16 bits), of what has
// the value (8 bits), and of the field (40 bits).
const (
	isKnown    = iota << 40 // a UUID of known order; the number is that of the field and of the order in which it is read
	isField                 // a value that may be something else than a UUID
	isSpelled               // a value that is not binary, and that nothing but a UUID is written like
	kindMask   = 0xff << 40
	numberMask = 1<<40 - 1
)

// Add adds a value of the field, as [kinds.Read] returns it. The error is one of the temporary file.
func (f *Values) Add(s kinds.Spelled) error {
	f.values++
	emit := func(v [16]byte, kind, number uint64) error {
		return f.in.survey.values.Add(spill.Of(v, f.in.group<<48|kind|number))
	}
	if s.Certain && f.Stored != kinds.GoStruct && !kinds.Symmetric(&s.UUID) {
		for o := range orders {
			if err := emit(representations[o].Permute(s.UUID), isKnown, f.number*orders+uint64(o)); err != nil {
				return err
			}
		}
	}
	switch {
	case len(f.kinds) == 0:
		return nil
	case s.Certain:
		return emit(s.UUID, isSpelled, f.number)
	}
	return emit(s.UUID, isField, f.number)
}

// Decide makes the decisions. It is called once, after the last document.
func (s *Survey) Decide() error {
	err := s.each(func(g *sharers) {
		for _, f := range g.fields {
			f.add(g.value, s.now)
		}
		for _, f := range g.spelled {
			f.spelled.add(g.value)
		}
	})
	if err != nil {
		return err
	}
	all, again := kinds.All(), false
	for _, f := range s.fields {
		if f == nil {
			continue
		}
		for _, k := range f.kinds {
			a := answer{kind: k, bit: slices.Index(all, k), from: orderOf(k.Order)}
			f.decideAs(&a)
			if slices.ContainsFunc(a.Against, func(r Rival) bool { return r.Distinct > 0 }) {
				a.alone, again = &tally{}, true
			}
			f.answers = append(f.answers, a)
		}
	}
	if again {
		if err := s.each(func(g *sharers) { g.separate(s.now) }); err != nil {
			return err
		}
		for _, f := range s.fields {
			for i := range f.all() {
				if a := &f.answers[i]; a.alone != nil {
					f.decideAs(a)
					a.alone = nil
				}
			}
		}
	}
	if len(s.fields) > 1 {
		if err := s.each((*sharers).compare); err != nil {
			return err
		}
	}
	for _, c := range s.collections {
		for _, k := range all {
			settle(c.answers(k))
		}
	}
	return nil
}

// all returns the answers. There are none for a field that was forgotten.
func (f *Values) all() []answer {
	if f == nil {
		return nil
	}
	return f.answers
}

// decideAs makes the decision of an answer.
func (f *Values) decideAs(a *answer) {
	if a.kind.IsBinary() {
		var earlier []Rival
		if a.kind.Subtype == bson.TypeBinaryUUIDOld {
			earlier = f.in.Earlier[Plain(f.path)]
		}
		a.Field = f.decide(f.path, a.from, a.kind.Subtype, earlier, a.alone)
	} else {
		a.Field = f.decideFormed()
	}
	a.rule = a.compile(a.from, a.kind.Subtype)
}

// separate adds a value to those that do not fit the order of an answer.
func (g *sharers) separate(now time.Time) {
	versions := read(&g.value)
	for _, f := range g.fields {
		for i := range f.answers {
			if a := &f.answers[i]; a.alone != nil && !a.rule.fits(versions[a.from]) {
				a.alone.add(g.value, now)
			}
		}
	}
}

// answers returns the decisions about the fields of the collection for the kind, sorted by path.
func (c *Surveyed) answers(k kinds.Kind) (out []*answer) {
	for _, f := range c.fields[k.Stored()] {
		for i := range f.answers {
			if a := &f.answers[i]; a.kind == k {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, func(a, b *answer) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Decision returns the decision about the values of the collection that are stored as k, in its order.
func (c *Surveyed) Decision(k kinds.Kind) Decision {
	d := Decision{Subtype: k.Subtype, From: k.Name, Made: c.survey.now.UTC().Truncate(time.Second), Documents: c.Documents, Fields: []Field{}}
	for _, a := range c.answers(k) {
		d.Fields = append(d.Fields, a.Field)
	}
	return d
}

// Plain returns a field name without the brackets of arrays. Elements of an array belong to the same
// field as single values.
func Plain(path string) string { return strings.ReplaceAll(path, "[]", "") }

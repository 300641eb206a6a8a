package decide

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/uuidrep"
)

// maxFields is the maximum number of fields that are distinguished, for collections whose field
// names are data. All other fields share the decision of Others.
const maxFields = 2000

// Question describes the decision to make.
type Question struct {
	Order   uuidrep.Representation
	Name    string // name of the order, as in --from
	Subtype byte
	Form    kinds.Form            // of the values; if it is not Binary, Subtype stands for it
	Wanted  func(*walk.Path) bool // selects fields; nil selects all
	// Trusted lists the fields whose order the user vouches for, as walk.Path.AppendField writes
	// them, with or without brackets.
	Trusted []string
	Query   bson.D // selects documents; nil selects all
	// Earlier lists, by field, the orders that earlier conversions of the collection have found.
	// The names are those of [Decision.Found].
	Earlier map[string][]Rival
}

// Pass reads every value of a collection, and compares it with values of other collections. It is
// not safe for concurrent use.
type Pass struct {
	Question
	now       time.Time
	documents int64
	fields    map[string]*field
	elsewhere map[string]*elsewhere
	numbers   uint32
	seen      *hashset.Set
	ids       *hashset.Set // UUIDs of subtype 4 and text, whose order is known
	anyID     bool
	few       int // total number of values in field.few
	name      []byte
	plain     []byte
	key       []byte
}

type field struct {
	tally
	path    string
	number  uint32
	spelled spelled            // if the values are not binary
	few     [][16]byte         // the first distinct values
	equal   map[[16]byte]uint8 // values equal to known ones; bit o is set if they are equal in order o
}

// NewPass returns a new Pass.
func NewPass(q Question, now time.Time) *Pass {
	return &Pass{Question: q, now: now, fields: make(map[string]*field), elsewhere: make(map[string]*elsewhere), seen: hashset.New(), ids: hashset.New()}
}

func (p *Pass) number() uint32 {
	p.numbers++
	return p.numbers
}

// Read adds the documents of coll that match the query.
func (p *Pass) Read(ctx context.Context, coll *mongo.Collection, progress func(int)) error {
	query := p.Query
	if query == nil {
		query = bson.D{}
	}
	return each(ctx, coll, query, p.Add, progress)
}

// ReadRest adds the documents of coll that do not match the query, as those of another collection,
// and returns their number.
func (p *Pass) ReadRest(ctx context.Context, coll *mongo.Collection, namespace string) (n int64, err error) {
	err = each(ctx, coll, bson.D{{Key: "$nor", Value: bson.A{p.Query}}}, p.Other(namespace).Add, func(int) { n++ })
	return n, err
}

func each(ctx context.Context, coll *mongo.Collection, query bson.D, add func([]byte) error, progress func(int)) error {
	cur, err := coll.Find(ctx, query, options.Find().SetBatchSize(2000))
	if err != nil {
		return err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	for cur.Next(ctx) {
		// The conversion skips a corrupt document when it reads it.
		if err := add(cur.Current); err != nil && !errors.Is(err, walk.ErrCorrupt) {
			return err
		}
		progress(1)
	}
	return cur.Err()
}

// Add counts a document of the collection. The error wraps walk.ErrCorrupt.
func (p *Pass) Add(doc []byte) error {
	p.documents++
	return p.Form.Walk(doc, nil, func(path *walk.Path, l walk.Leaf) error { return p.value("", path, l) })
}

// Other adds documents that are not converted, from the collection with the namespace.
type Other struct {
	p         *Pass
	namespace string
}

// Other returns an Other for the namespace. Its documents must be added after those of the
// converted collection.
func (p *Pass) Other(namespace string) *Other { return &Other{p, namespace} }

// Add looks for equal values in a document. The error wraps walk.ErrCorrupt.
func (o *Other) Add(doc []byte) error {
	return o.p.Form.Walk(doc, nil, func(path *walk.Path, l walk.Leaf) error { return o.p.value(o.namespace, path, l) })
}

// value adds a value of the converted collection, or of another one if namespace is not empty.
func (p *Pass) value(namespace string, path *walk.Path, l walk.Leaf) error {
	if p.Form != kinds.Binary {
		p.formed(namespace, path, l)
		return nil
	}
	if text, ok := l.Text(); ok {
		if u, ok := scan.TextUUID(text); ok && p.Subtype != bson.TypeBinaryUUID {
			p.known(u)
		}
		return nil
	}
	subtype, data, _, ok := l.Binary()
	switch {
	case !ok || len(data) != 16:
		return nil
	case subtype == bson.TypeBinaryUUID && p.Subtype != subtype:
		p.known([16]byte(data))
		return nil
	case subtype != p.Subtype:
		return nil
	}
	v := [16]byte(data)
	if namespace != "" || p.Wanted != nil && !p.Wanted(path) {
		p.name = path.AppendField(p.name[:0])
		p.leave(namespace, v)
		return nil
	}
	f := p.field(path)
	f.values++
	if p.add(f.number, v) {
		f.add(v, p.now)
		p.compare(f, v)
	}
	return nil
}

// field returns the field that the value at the path belongs to.
func (p *Pass) field(path *walk.Path) *field {
	p.name = path.AppendField(p.name[:0])
	p.plain = appendPlain(p.plain[:0], p.name)
	f := p.fields[string(p.plain)]
	if f == nil {
		plain, name := string(p.plain), string(p.name)
		if len(p.fields) >= maxFields {
			plain, name = Others, Others
		}
		if f = p.fields[plain]; f == nil {
			f = &field{path: name, number: p.number()}
			p.fields[plain] = f
		}
	}
	return f
}

// Decide returns the decision, and the trusted fields that have no value that the conversion
// applies to.
func (p *Pass) Decide() (d Decision, unknown []string) {
	d = p.DecideIn(p.Order, p.Name, p.Trusted)
	for _, t := range p.Trusted {
		if p.fields[strings.ReplaceAll(t, "[]", "")] == nil {
			unknown = append(unknown, t)
		}
	}
	return d, unknown
}

// DecideIn returns the decision for a conversion of the same values from another order, whose name
// is name. It can be called several times.
func (p *Pass) DecideIn(order uuidrep.Representation, name string, trusted []string) Decision {
	d := Decision{Subtype: p.Subtype, From: name, Made: p.now.UTC().Truncate(time.Second), Documents: p.documents, Trusted: trusted, Fields: []Field{}}
	from := orderOf(order)
	decided := make(map[*field]*Field)
	for plain, f := range p.fields {
		trusts := slices.ContainsFunc(trusted, func(t string) bool { return strings.ReplaceAll(t, "[]", "") == plain })
		q := p.Question
		q.Name = name
		one := f.decided(q, from, trusts, p.Earlier[plain])
		decided[f] = &one
	}
	var known map[*field]map[[16]byte]uint8
	if p.Form == kinds.Binary {
		known = p.shareEvidence(decided, from)
	}
	room := MaxEqual
	for _, f := range slices.SortedFunc(maps.Keys(decided), func(a, b *field) int { return strings.Compare(a.path, b.path) }) {
		weigh(known[f], decided[f], from, p.Subtype, &room)
		d.Fields = append(d.Fields, *decided[f])
	}
	return d
}

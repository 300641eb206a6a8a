package convert

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Retry has the values of a skip list. A conversion may be limited to them. A Retry is not safe for
// concurrent use.
type Retry struct {
	entries map[string]*listed // by documents.Key of the _id
}

type listed struct {
	id     bson.RawValue
	values []listedValue
	has    map[listedValue]bool
}

type listedValue struct {
	path  string
	value rule.Value
}

func (v listedValue) left(reason string) rule.Left {
	return rule.Left{Path: v.path, Value: v.value, Reason: reason}
}

// ReadListed reads the values in the skip list at path that of is about. The ledger says that a conversion of the collection
// namespace has listed so much. A list without such values is not an error.
func ReadListed(path, namespace string, has Listed, of rule.Conversion) (*Retry, error) {
	r := &Retry{entries: make(map[string]*listed)}
	return r, eachListedOf(path, namespace, has, of, r.add)
}

// EachListed calls f for the UUIDs of the values that ReadListed returns.
func EachListed(path, namespace string, has Listed, of rule.Conversion, f func(octets [16]byte)) error {
	return eachListedOf(path, namespace, has, of, func(_ bson.RawValue, v listedValue) {
		if u, ok := of.UUID(v.value); ok {
			f(u)
		}
	})
}

func eachListedOf(path, namespace string, has Listed, of rule.Conversion, f func(id bson.RawValue, v listedValue)) error {
	return eachLine(path, namespace, has, func(id bson.RawValue, v *listedValue) {
		if v != nil && of.IsAbout(v.path, v.value) {
			f(id, *v)
		}
	})
}

// ListedBeside returns the number of documents in the skip list at path that have another value than those that of
// is about, or that could not be read: of all if of is nil.
func ListedBeside(path, namespace string, has Listed, of rule.Conversion) (n int64, err error) {
	last := ""
	err = eachLine(path, namespace, has, func(id bson.RawValue, v *listedValue) {
		if key := documents.Key(id); (v == nil || !of.IsAbout(v.path, v.value)) && (n == 0 || key != last) {
			n, last = n+1, key
		}
	})
	return n, err
}

// eachLine calls f for the lines of the skip list at path, which must have what has says, as [eachListed] does.
func eachLine(path, namespace string, has Listed, f func(id bson.RawValue, v *listedValue)) error {
	if has.Size == 0 {
		return nil
	}
	list := &SkipList{earlier: hashset.New(), sum: sha256.New()}
	file, err := os.Open(path)
	if err == nil {
		err = errors.Join(list.read(file, has), file.Close())
	}
	if err != nil {
		return &RecordError{SkipRecord, path, err}
	}
	return eachListed(path, namespace, f)
}

func (r *Retry) add(id bson.RawValue, v listedValue) {
	key := documents.Key(id)
	e := r.entries[key]
	if e == nil {
		e = &listed{id: bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}, has: make(map[listedValue]bool)}
		r.entries[key] = e
	}
	if !e.has[v] {
		e.values, e.has[v] = append(e.values, v), true
	}
}

// eachListed calls f for the lines of the skip list at path, with the _ids of their documents; the value is nil if
// the line is about the document. Its errors are *RecordErrors.
func eachListed(path, namespace string, f func(id bson.RawValue, v *listedValue)) error {
	file, err := os.Open(path)
	if err != nil {
		return &RecordError{SkipRecord, path, err}
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return &RecordError{SkipRecord, path, errors.Join(err, errors.New("not a regular file"))}
	}
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err == nil || err == io.EOF {
			err = listedLine(line, namespace, f)
		}
		if err != nil {
			return &RecordError{SkipRecord, path, fmt.Errorf("line %d: %w", n, err)}
		}
	}
}

func listedLine(line []byte, namespace string, f func(id bson.RawValue, v *listedValue)) error {
	var l struct {
		Collection string
		ID         bson.RawValue `bson:"_id"`
		Path       *string
		Value      bson.RawValue
		Reason     string
	}
	// The driver does not return from skipping an unknown field of a line that is cut off.
	if !json.Valid(line) {
		return errors.New("invalid line of a skip list: it is not JSON")
	}
	if err := bson.UnmarshalExtJSON(line, true, &l); err != nil {
		return fmt.Errorf("invalid line of a skip list: %w", err)
	}
	switch {
	case l.Collection == "" || l.ID.Type == 0:
		return errors.New("invalid line of a skip list: no collection or no _id")
	case l.Collection != namespace:
		return fmt.Errorf("it lists values of %s", l.Collection)
	case l.Path == nil && l.Value.Type == 0:
		f(l.ID, nil)
		return nil
	case l.Path == nil:
		return errors.New("invalid line of a skip list: no path")
	}
	v := rule.ValueOf(l.Value.Type, l.Value.Value)
	leaf := walk.Leaf{Type: l.Value.Type, Value: l.Value.Value}
	if l.Value.Type == 0 || l.Value.Type == bson.TypeBinary && v.Other != "" && !kinds.BinaryText.Applies(leaf) && !kinds.Malformed.Applies(leaf) {
		return errors.New("invalid line of a skip list: not a value that a conversion lists")
	}
	f(l.ID, &listedValue{*l.Path, v})
	return nil
}

// maxAsked is the maximum number of _ids in a query, which have at most [documents.MaxAsked] bytes. If the list has more,
// the whole collection is read.
const maxAsked = 10_000

// Filter returns a filter for the documents of the list, or nil if the list has too many documents
// for a query.
func (r *Retry) Filter() bson.D {
	ids, size := bson.A{}, 0
	for _, e := range r.entries {
		ids, size = append(ids, e.id), size+len(e.id.Value)
		if len(ids) > maxAsked || size > documents.MaxAsked {
			return nil
		}
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}
}

// Has reports whether the list has values of the document.
func (r *Retry) Has(id bson.RawValue) bool { return r.entries[documents.Key(id)] != nil }

// limit removes from p what the list does not have. It adds listed values that the document no longer
// has to p.Skipped.
func (r *Retry) limit(p *rule.Plan, doc bson.Raw, c rule.Conversion) {
	key := documents.Key(p.ID)
	e := r.entries[key]
	delete(r.entries, key)
	if e == nil {
		*p = rule.Plan{}
		return
	}
	other := func(ch rule.Change) bool { return !e.has[listedValue{ch.Path, ch.Old}] }
	p.Changes = slices.DeleteFunc(p.Changes, other)
	p.InID = slices.DeleteFunc(p.InID, other)
	p.Skipped = slices.DeleteFunc(p.Skipped, func(l rule.Left) bool { return !l.Document && !e.has[listedValue{l.Path, l.Value}] })
	held, mentioned := rule.HeldBy(doc, len(e.values)), make(map[listedValue]bool)
	for _, ch := range slices.Concat(p.Changes, p.InID) {
		mentioned[listedValue{ch.Path, ch.Old}] = true
	}
	for _, l := range p.Skipped {
		mentioned[listedValue{l.Path, l.Value}] = true
	}
	for _, v := range e.values {
		now, ok := held.At(v.path)
		switch {
		case mentioned[v]:
		case ok && now == v.value:
			p.Skipped = append(p.Skipped, v.left("the field is not selected for conversion"))
		case ok && c.Makes(rule.Change{Path: v.path, Old: v.value, New: now}): // an earlier run has converted it
		default:
			p.Skipped = append(p.Skipped, v.left(changedListed))
		}
	}
}

// changedListed is why a listed value is left that is not there any more.
const changedListed = "another program changed the value after it was listed"

// rest calls f for the documents of the list that were not read.
func (r *Retry) rest(f func(id bson.RawValue, left []rule.Left)) {
	for _, e := range r.entries {
		var left []rule.Left
		for _, v := range e.values {
			left = append(left, v.left("the document no longer exists"))
		}
		f(e.id, left)
	}
}

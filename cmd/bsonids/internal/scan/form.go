package scan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// FormEvidence describes the UUIDs of a field in a form that is not binary. It is based on distinct
// UUIDs, of which Sample were examined.
type FormEvidence struct {
	Form     string `json:"form"`     // text or goStruct
	Distinct int64  `json:"distinct"` // approximate number of distinct UUIDs
	Sample   int    `json:"sample"`
	// Uninformative is the number of UUIDs that have no version, such as the nil UUID. Sample does not
	// include them.
	Uninformative int `json:"uninformative,omitempty"`

	Fits     int     `json:"fits"`     // with the variant of RFC 9562 and a version from 1 to 8
	Versions [9]int  `json:"versions"` // of those that fit, by version; [0] is unused
	Written  Written `json:"written"`

	Matches    int    `json:"matches"` // equal to an id of subtype 4 or text in another field
	MatchedIn  string `json:"matchedIn,omitempty"`
	Comparable int    `json:"comparable,omitempty"` // UUIDs that could have matched in that field

	Reasons []string `json:"reasons"`
	Odd     Odd      `json:"-"`
}

// Written counts the values of one form by how they are written.
type Written struct {
	Hyphens int64 `json:"hyphens,omitempty"` // 36 characters
	Braces  int64 `json:"braces,omitempty"`  // hyphens in braces
	URN     int64 `json:"urn,omitempty"`     // hyphens after urn:uuid:
	Digits  int64 `json:"digits,omitempty"`  // 32 characters

	UUID  int64 `json:"uuid,omitempty"`  // documents {uuid: X}
	Valid int64 `json:"valid,omitempty"` // documents {uuid: X, valid: true}
	Null  int64 `json:"null,omitempty"`  // documents {uuid: X, valid: false}
}

// Sum returns the number of values.
func (w Written) Sum() int64 {
	return w.Hyphens + w.Braces + w.URN + w.Digits + w.UUID + w.Valid + w.Null
}

// formed holds the values of one form.
type formed struct {
	written Written
	values  *sketch
	odd     Odd
}

// text adds text that is certainly a UUID.
func (f *formed) text(s kinds.Spelled, size int) {
	switch size {
	case 36:
		f.written.Hyphens++
	case 38:
		f.written.Braces++
	default:
		f.written.URN++
	}
	keep(&f.values, s.UUID)
}

// document adds a document of a Go struct.
func (f *formed) document(l walk.Leaf) {
	s, _, _ := kinds.ParseStruct(l.Value) // it was parsed before
	_, err := bson.Raw(l.Value).LookupErr("valid")
	switch {
	case s.Null:
		f.written.Null++
	case err == nil:
		f.written.Valid++
	default:
		f.written.UUID++
	}
	keep(&f.values, s.UUID)
}

// digits adds text of 32 digits.
func (f *formed) digits(n int64, s *sketch) {
	f.written.Digits = n
	if f.values == nil {
		f.values = new(sketch)
	}
	f.values.merge(s)
}

// evidence returns the evidence, or none if there are no values. field is the name of the field in
// refs.
func (f *formed) evidence(form, field string, refs *references) []FormEvidence {
	if f.values == nil {
		return nil
	}
	e := FormEvidence{Form: form, Distinct: f.values.distinct(), Written: f.written, Odd: f.odd}
	found := make(map[int32]int)
	for _, entry := range f.values.entries {
		if symmetric(entry.value) {
			e.Uninformative++
			continue
		}
		e.Sample++
		if v := entry.value[6] >> 4; v >= 1 && v <= 8 && entry.value[8]>>6 == 0b10 {
			e.Fits++
			e.Versions[v]++
		}
		for _, n := range refs.ids[entry.value] {
			if refs.names[n] != field {
				found[n]++
			}
		}
	}
	best := int32(-1)
	for n, count := range found {
		if count > e.Matches || count == e.Matches && refs.names[n] < refs.names[best] {
			best, e.Matches = n, count
		}
	}
	if best >= 0 {
		e.MatchedIn, e.Comparable = refs.names[best], max(refs.comparable(f.values, best), e.Matches)
	}
	e.explain()
	return []FormEvidence{e}
}

func (e *FormEvidence) explain() {
	reason := func(format string, args ...any) { e.Reasons = append(e.Reasons, fmt.Sprintf(format, args...)) }
	var how []string
	for _, w := range []struct {
		n    int64
		name string
	}{{e.Written.Hyphens, "with hyphens"}, {e.Written.Braces, "in braces"}, {e.Written.URN, "after urn:uuid:"}, {e.Written.Digits, "with 32 digits and no hyphens"},
		{e.Written.UUID, "{uuid: …}"}, {e.Written.Valid, "{uuid: …, valid: true}"}, {e.Written.Null, "{uuid: …, valid: false}, which is no UUID"}} {
		if w.n > 0 {
			how = append(how, fmt.Sprintf("%d %s", w.n, w.name))
		}
	}
	reason("%s", strings.Join(how, ", "))
	if e.Sample > 0 {
		var versions []string
		for v, n := range e.Versions {
			if n > 0 {
				versions = append(versions, strconv.Itoa(v))
			}
		}
		of := ""
		if len(versions) > 0 {
			of = ": " + strings.Join(versions, ", ")
		}
		reason("%d of %d distinct UUIDs have the variant and a version of RFC 9562%s", e.Fits, e.Sample, of)
	}
	if e.Uninformative > 0 {
		reason("%d have no version, such as the nil UUID", e.Uninformative)
	}
	if e.Matches > 0 {
		reason("%d of %d comparable UUIDs equal ids in %s", e.Matches, e.Comparable, e.MatchedIn)
	}
}

// merge adds the values of o. Only those are kept that both would have.
func (s *sketch) merge(o *sketch) {
	limit := min(s.limit(), o.limit())
	for _, e := range o.entries {
		s.add(e.value)
	}
	if limit == math.MaxUint64 {
		return
	}
	s.full = true
	for len(s.entries) > 1 && s.entries[0].hash > limit {
		s.drop()
	}
}

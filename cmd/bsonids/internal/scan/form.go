package scan

import (
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// FormEvidence describes the distinct UUIDs of a field in a form that is not binary.
type FormEvidence struct {
	Form     string `json:"form"` // text or goStruct
	Distinct int64  `json:"distinct"`
	// Uninformative is the number of UUIDs that have no version, such as the nil UUID.
	Uninformative int64 `json:"uninformative,omitempty"`

	Fits     int64    `json:"fits"`     // with the variant of RFC 9562 and a version from 1 to 8
	Versions [9]int64 `json:"versions"` // of those that fit, by version; [0] is unused
	Written  Written  `json:"written"`

	Matches   int64  `json:"matches"` // equal to an id of subtype 4 or text in another field
	MatchedIn string `json:"matchedIn,omitempty"`

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

// formed describes the values of one form.
type formed struct {
	written Written
	odd     Odd
}

// text adds text that is certainly a UUID.
func (f *formed) text(size int) {
	switch size {
	case 36:
		f.written.Hyphens++
	case 38:
		f.written.Braces++
	default:
		f.written.URN++
	}
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
}

// evidence returns the evidence, or none if there are no values.
func (f *formed) evidence(form string, found decide.Found) []FormEvidence {
	if f.written.Sum() == 0 {
		return nil
	}
	e := FormEvidence{Form: form, Distinct: found.Distinct, Uninformative: found.Same, Written: f.written, Odd: f.odd}
	for _, r := range found.Orders { // one
		e.Fits, e.Versions, e.Matches, e.MatchedIn = r.Fits, r.Versions, r.Matches, r.MatchedIn
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
	if n := e.Distinct - e.Uninformative; n > 0 {
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
		reason("%d of %d distinct UUIDs have the variant and a version of RFC 9562%s", e.Fits, n, of)
	}
	if e.Uninformative > 0 {
		reason("%d have no version, such as the nil UUID", e.Uninformative)
	}
	if e.Matches > 0 {
		reason("%d equal ids of known order, most of them in %s", e.Matches, e.MatchedIn)
	}
}

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

// add adds a value of the form.
func (f *formed) add(p *walk.Path, l walk.Leaf, s kinds.Spelled) {
	f.odd.add(p)
	w := &f.written
	if l.Type == bson.TypeEmbeddedDocument {
		_, err := bson.Raw(l.Value).LookupErr("valid")
		switch {
		case s.Null:
			w.Null++
		case err == nil:
			w.Valid++
		default:
			w.UUID++
		}
		return
	}
	switch text, _ := l.Text(); len(text) {
	case 32:
		w.Digits++
	case 36:
		w.Hyphens++
	case 38:
		w.Braces++
	default:
		w.URN++
	}
}

// evidence returns the evidence for the values that were found.
func (f *formed) evidence(form kinds.Stored, found decide.Found) FormEvidence {
	r := found.Orders[0]
	e := FormEvidence{Form: string(form), Distinct: found.Distinct, Uninformative: found.Uninformative, Written: f.written, Odd: f.odd,
		Fits: r.Fits, Versions: r.Versions, Matches: r.Matches, MatchedIn: r.MatchedIn}
	e.explain()
	return e
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

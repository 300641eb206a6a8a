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
	Form     string `json:"form"` // text, goStruct or binaryText
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

// Written counts the values of one form by how they are written, which is a key of ways.
type Written map[string]int64

// ways has the ways to write a value, and what is said about each.
var ways = []struct{ key, text string }{
	{"hyphens", "with hyphens"}, {"braces", "in braces"}, {"urn", "after urn:uuid:"}, {digits, "with 32 digits and no hyphens"},
	{"uuidDigits", "with 32 digits and no hyphens, and of a subtype of UUIDs"},
	{"uuid", "{uuid: …}"}, {"valid", "{uuid: …, valid: true}"}, {"null", "{uuid: …, valid: false}, which is no UUID"},
}

const digits = "digits"

// wayOf returns how a value that was read is written.
func wayOf(l walk.Leaf, s kinds.Spelled) string {
	text, ok := l.Text()
	if l.Type == bson.TypeBinary {
		_, text, ok = kinds.Octets(l)
	}
	switch n := len(text); {
	case !ok && s.Null:
		return "null"
	case !ok && len(l.Value) == 40:
		return "valid"
	case !ok:
		return "uuid"
	case n == 32 && s.Certain:
		return "uuidDigits"
	case n == 32:
		return digits
	case n == 36:
		return "hyphens"
	case n == 38:
		return "braces"
	}
	return "urn"
}

// Sum returns the number of values.
func (w Written) Sum() (n int64) {
	for _, values := range w {
		n += values
	}
	return n
}

// formed describes the values of one form.
type formed struct {
	written Written
	odd     Odd
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
	for _, w := range ways {
		if n := e.Written[w.key]; n > 0 {
			how = append(how, fmt.Sprintf("%d %s", n, w.text))
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

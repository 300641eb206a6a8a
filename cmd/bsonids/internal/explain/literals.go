package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/uuidtext"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	// goBinary matches how package fmt prints a bson.Binary, with %v, %+v, %x and %#v.
	goBinary = regexp.MustCompile(`^&?(?:(?:[a-z]+\.)?Binary)?\{\s*(?:Subtype:\s*)?(0[xX][0-9a-fA-F]{1,2}|[0-9]{1,3}|[0-9a-fA-F]{1,2}),?\s+(?:Data:\s*)?(\S.*)\}$`)
	// goBytes matches how it prints a slice or an array of bytes, with %v and %#v.
	goBytes = regexp.MustCompile(`^(?:\[([0-9][0-9, ]*)\]|\[[0-9]*\](?:uint8|byte)\{([0-9a-fA-FxX, ]+)\})$`)
)

// parseGo parses what package fmt prints of a bson.Binary or of bytes. found is false if s is neither.
func parseGo(s string) (v Value, found bool, err error) {
	if m := goBinary.FindStringSubmatch(s); m != nil {
		b, isList, err := parseGoBytes(m[2])
		digits, isHex := strings.CutPrefix(strings.ToLower(m[1]), "0x")
		base := 10
		if !isList { // %x prints both in hexadecimal
			b, err = parseHex(m[2])
		}
		if isHex || !isList {
			base = 16
		}
		subtype, subtypeErr := strconv.ParseUint(digits, base, 8)
		if err := errors.Join(err, subtypeErr); err != nil {
			return v, true, fmt.Errorf("%q is not a bson.Binary as Go prints it", shorten(s))
		}
		v, err = Value{Form: "bson.Binary as Go prints it"}.with(byte(subtype), b)
		return v, true, err
	}
	b, found, err := parseGoBytes(s)
	if !found {
		return v, false, nil
	}
	if err != nil {
		return v, true, fmt.Errorf("%q is not bytes as Go prints them", shorten(s))
	}
	v, err = ofBytes(b, "as Go prints them")
	return v, true, err
}

func parseGoBytes(s string) (b []byte, found bool, err error) {
	m := goBytes.FindStringSubmatch(s)
	if m == nil {
		return nil, false, nil
	}
	for _, n := range strings.FieldsFunc(m[1]+m[2], func(r rune) bool { return r == ' ' || r == ',' }) {
		x, err := strconv.ParseUint(n, 0, 8)
		if err != nil {
			return nil, true, err
		}
		b = append(b, byte(x))
	}
	return b, true, nil
}

// parseGoJSON parses what package encoding/json writes of a bson.Binary. found is false if s is something else.
func parseGoJSON(s string) (v Value, found bool, err error) {
	var is struct {
		Subtype *byte
		Data    *[]byte
	}
	if err := json.Unmarshal([]byte(s), &is); err != nil || is.Subtype == nil || is.Data == nil {
		return v, false, nil
	}
	v, err = Value{Form: "bson.Binary in Go's JSON"}.with(*is.Subtype, *is.Data)
	return v, true, err
}

// pythonBytes matches a bytes literal of Python at the beginning.
var pythonBytes = regexp.MustCompile(`^\s*[bB]('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`)

// cutPythonBytes parses a bytes literal of Python at the beginning of s, and returns what follows it. found is
// false if there is none.
func cutPythonBytes(s string) (b []byte, rest string, found bool, err error) {
	m := pythonBytes.FindStringSubmatch(s)
	if m == nil {
		return nil, s, false, nil
	}
	rest, text := s[len(m[0]):], m[1][1:len(m[1])-1]
	for len(text) > 0 {
		c := text[0]
		text = text[1:]
		switch {
		case c >= 0x80:
			return nil, rest, true, errors.New("a bytes literal has only ASCII characters")
		case c != '\\':
			b = append(b, c)
			continue
		}
		c = text[0] // pythonBytes has a character after each backslash
		switch i := strings.IndexByte(`\'"abfnrtv`, c); {
		case i >= 0:
			b, text = append(b, "\\'\"\a\b\f\n\r\t\v"[i]), text[1:]
		case c == 'x':
			if len(text) < 3 {
				return nil, rest, true, errors.New(`\x requires two hexadecimal digits`)
			}
			n, err := strconv.ParseUint(text[1:3], 16, 8)
			if err != nil {
				return nil, rest, true, errors.New(`\x requires two hexadecimal digits`)
			}
			b, text = append(b, byte(n)), text[3:]
		case c >= '0' && c <= '7':
			digits := 1
			for digits < min(3, len(text)) && text[digits] >= '0' && text[digits] <= '7' {
				digits++
			}
			n, err := strconv.ParseUint(text[:digits], 8, 8)
			if err != nil {
				return nil, rest, true, errors.New(`an octal escape is at most \377`)
			}
			b, text = append(b, byte(n)), text[digits:]
		default: // Python keeps the backslash
			b = append(b, '\\')
		}
	}
	return b, rest, true, nil
}

// parsePythonBytes parses a bytes literal, which is how PyMongo returns subtype 0, and how Python prints the bytes of a UUID.
func parsePythonBytes(s string) (v Value, found bool, err error) {
	b, rest, found, err := cutPythonBytes(s)
	switch {
	case !found || rest != "":
		return v, false, nil
	case err != nil:
		return v, true, fmt.Errorf("%q: %w", shorten(s), err)
	}
	v, err = ofBytes(b, "as Python prints them")
	return v, true, err
}

// pythonUUID matches a UUID of Python and, after it or after the call around it, a representation of PyMongo.
var pythonUUID = regexp.MustCompile(`^((?:[a-z]+\.)*Binary\.from_uuid\(\s*)?(?:uuid\.)?UUID\(\s*("[^"]*"|'[^']*')\s*(\)\s*)?` +
	`(?:,\s*(?:uuid_representation\s*=\s*)?([A-Za-z_.]+|[0-9]+)\s*)?\)$`)

// pythonNumbers has the numbers of bson.binary.UuidRepresentation in PyMongo.
var pythonNumbers = map[string]uuidrep.Representation{
	"3": uuidrep.PythonLegacy, "4": uuidrep.Standard, "5": uuidrep.JavaLegacy, "6": uuidrep.CSharpLegacy,
}

// parsePythonUUID parses UUID('…') with a representation, and Binary.from_uuid(UUID('…'), …). found is false if s is
// neither, or UUID('…') alone.
func parsePythonUUID(s string) (v Value, found bool, err error) {
	m := pythonUUID.FindStringSubmatch(s)
	if m == nil || (m[1] == "") != (m[3] == "") || m[1] == "" && m[4] == "" && !strings.HasPrefix(s, "uuid.") {
		return v, false, nil
	}
	v.Form, v.Representation = "UUID(…) of Python", uuidrep.Standard
	if m[4] != "" {
		name := m[4][strings.LastIndexByte(m[4], '.')+1:]
		r, ok := pythonNumbers[name]
		if !ok {
			r, err = uuidrep.Parse(strings.ReplaceAll(name, "_", ""))
		}
		if err != nil || r == uuidrep.Unspecified {
			return v, true, fmt.Errorf("%q is not a representation of PyMongo that stores a UUID", shorten(m[4]))
		}
		v.Form, v.Representation = "UUID(…) of Python with "+r.String(), r
	}
	u, err := uuidtext.Parse(unquote(m[2]))
	if err != nil {
		return v, true, fmt.Errorf("UUID(…): %q is not a UUID", shorten(unquote(m[2])))
	}
	stored, subtype := v.Representation.Permute(u), byte(bson.TypeBinaryUUIDOld)
	if v.Representation == uuidrep.Standard {
		subtype = bson.TypeBinaryUUID
	}
	v, err = v.with(subtype, stored[:])
	return v, true, err
}

// Package explain describes an identifier, a UUID or an ObjectID, in any of the forms that shells,
// drivers and exports write.
package explain

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/internal/uuidtext"
	"github.com/bsonids/bsonids/uuidrep"
)

// Value is the result of parsing a form. It can be copied.
type Value struct {
	// ObjectID is set if the form is an ObjectID. The other fields but Form are then unused.
	ObjectID *bson.ObjectID

	// Octets is the 16 bytes, in the order in which the value is stored, or in which it was written
	// if Subtype is nil.
	Octets [16]byte

	// Subtype is the binary subtype that the form names, or nil.
	Subtype *byte

	// Representation is the representation that the form names: javaLegacy for JUUID("…"), standard
	// for UUID("…"). It is Unspecified if the form does not name one.
	Representation uuidrep.Representation

	// Text is the text of the UUID if the bytes of the form are that, in ASCII, and not the UUID. Octets is then the
	// UUID.
	Text string

	// Form describes the form that was parsed.
	Form string
}

// ErrForm is wrapped by the error of Parse if the text is not in a known form.
var ErrForm = errors.New("not a UUID or ObjectID in a known form: must be a UUID, 16 or 12 bytes in hexadecimal, " +
	`16 bytes in base64, a ULID or TypeID, UUID("…"), BinData(3, "…"), HexData(4, "…"), JUUID("…"), ObjectId("…"), ` +
	`extended JSON, a bson.Binary as Go prints it, or Binary(b'…', 3) as Python does`)

// Parse parses s and ignores leading and trailing white space. The error wraps ErrForm, or
// describes the error in the form that s has.
func Parse(s string) (Value, error) {
	s = strings.TrimSpace(s)
	for _, parse := range []func(string) (Value, bool, error){parseGo, parseGoJSON, parsePythonBytes, parsePythonUUID} {
		if v, found, err := parse(s); found {
			return v, err
		}
	}
	switch {
	case strings.HasPrefix(s, "{") && strings.Contains(s, "$"):
		return parseExtJSON(s)
	case strings.HasSuffix(s, ")"):
		return parseCall(s)
	case strings.Contains(s, "://"): // may contain a password
		return Value{}, fmt.Errorf("a connection string is %w", ErrForm)
	}
	return parseBare(unquote(s))
}

func parseBare(s string) (Value, error) {
	if u, err := uuidtext.Parse(s); err == nil && len(s) != 32 {
		return Value{Octets: u, Form: formUUID}, nil
	}
	octets, hexErr := parseHex(s)
	switch {
	case hexErr != nil:
	case len(octets) == 12:
		id := bson.ObjectID(octets)
		return Value{ObjectID: &id, Form: "12 bytes in hexadecimal"}, nil
	case isUUID(octets):
		return ofBytes(octets, "in hexadecimal")
	}
	if v, ok := parseBase32(s); ok {
		return v, nil
	}
	if b, err := parseBase64(s); err == nil && isUUID(b) {
		return ofBytes(b, "in base64")
	}
	if hexErr == nil {
		return Value{}, fmt.Errorf("%d bytes in hexadecimal: a UUID has 16, an ObjectID 12", len(octets))
	}
	return Value{}, fmt.Errorf("%q: %w", shorten(s), ErrForm)
}

// parseHex parses hexadecimal bytes: bare, after 0x, or separated by spaces, colons, hyphens,
// commas or \x.
func parseHex(s string) ([]byte, error) {
	s = strings.NewReplacer(`\x`, "", "0x", "", "0X", "", " ", "", ":", "", "-", "", ",", "").Replace(s)
	if s == "" {
		return nil, errors.New("empty")
	}
	return hex.DecodeString(s)
}

// parseBase64 parses the standard and the URL alphabet, with or without padding.
func parseBase64(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	return base64.RawStdEncoding.DecodeString(s)
}

// crockford is the alphabet in which ULID and TypeID write 128 bits as 26 characters.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// typePrefix matches the type in a TypeID.
var typePrefix = regexp.MustCompile(`^[a-z]([a-z_]{0,61}[a-z])?$`)

// parseBase32 parses the text of a ULID, in either case, or a TypeID: a type, an underscore, and a UUID.
func parseBase32(s string) (Value, bool) {
	form, digits := formULID, strings.ToLower(s)
	if i := strings.LastIndexByte(s, '_'); i >= 0 {
		if !typePrefix.MatchString(s[:i]) {
			return Value{}, false
		}
		form, digits = formTypeID+s[:i], s[i+1:]
	}
	if len(digits) != 26 || digits[0] > '7' {
		return Value{}, false
	}
	b, err := crockford.DecodeString("000000" + digits) // 30 bits before 130, of which the first two are 0
	if err != nil {
		return Value{}, false
	}
	return Value{Octets: [16]byte(b[4:]), Form: form}, true
}

const (
	formUUID   = "UUID"
	formULID   = "ULID"
	formTypeID = "TypeID with the type "
)

// call matches NAME(arguments), optionally after new.
var call = regexp.MustCompile(`^(?:new\s+)?([A-Za-z][A-Za-z0-9.]*)\s*\((.*)\)$`)

// bufferFrom matches how older shells print the data of a Binary.
var bufferFrom = regexp.MustCompile(`^\s*Buffer\.from\(\s*("[^"]*"|'[^']*')\s*,\s*["'](hex|base64)["']\s*\)`)

// uuidCalls holds the functions whose argument is written like a UUID, in lower case, and the byte order that they
// name. The argument of LUUID is the stored bytes, whose order remains unknown.
var uuidCalls = func() map[string]uuidrep.Representation {
	calls := map[string]uuidrep.Representation{"luuid": uuidrep.Unspecified}
	for _, k := range kinds.All() {
		for _, name := range strings.Fields(strings.ToLower(k.Calls)) {
			calls[name] = k.Order
		}
	}
	return calls
}()

func parseCall(s string) (Value, error) {
	m := call.FindStringSubmatch(s)
	if m == nil {
		return Value{}, fmt.Errorf("%q: %w", shorten(s), ErrForm)
	}
	name, args := m[1], m[2]
	v := Value{Form: name + "(…)"}
	isHex, found := false, true
	var subtype, data string
	switch lower := strings.ToLower(name); lower {
	default:
		order, ok := uuidCalls[lower]
		if !ok {
			return Value{}, fmt.Errorf("%s(…): %w", shorten(name), ErrForm)
		}
		u, err := uuidtext.Parse(unquote(args))
		if err != nil {
			return Value{}, fmt.Errorf("%s(…): %q is not a UUID", name, shorten(unquote(args)))
		}
		stored := order.Permute(u)
		if order == uuidrep.Standard {
			return v.with(bson.TypeBinaryUUID, stored[:])
		}
		v.Representation = order
		return v.with(bson.TypeBinaryUUIDOld, stored[:])
	case "objectid":
		b, err := parseHex(unquote(args))
		if err != nil || len(b) != 12 {
			return Value{}, fmt.Errorf("%s(…) requires 24 hexadecimal digits in quotes", name)
		}
		id := bson.ObjectID(b)
		v.ObjectID = &id
		return v, nil
	case "bindata", "hexdata":
		isHex = lower == "hexdata"
		if subtype, data, found = strings.Cut(args, ","); !found {
			return Value{}, fmt.Errorf("%s(…) requires a subtype and a quoted string", name)
		}
	case "binary.createfrombase64", "binary.createfromhexstring":
		isHex = lower == "binary.createfromhexstring"
		if data, subtype, found = strings.Cut(args, ","); !found {
			subtype = "0"
		}
	case "binary", "bson.binary", "bson.binary.binary":
		if b, rest, ok, err := cutPythonBytes(args); ok {
			rest = strings.TrimSpace(rest)
			subtype, hasSubtype := strings.CutPrefix(rest, ",")
			switch {
			case err != nil:
				return Value{}, fmt.Errorf("%s(b…): %w", name, err)
			case rest == "":
				subtype = "0"
			case !hasSubtype:
				return Value{}, fmt.Errorf("%s(b…): a comma must follow the bytes", name)
			}
			n, err := parseSubtype(name, strings.TrimPrefix(strings.TrimSpace(subtype), "subtype="))
			if err != nil {
				return Value{}, err
			}
			v.Form = name + "(b…) of Python"
			return v.with(n, b)
		}
		m := bufferFrom.FindStringSubmatch(args)
		if m == nil {
			return Value{}, errors.New(`Binary(…) requires Buffer.from("…", "hex"), Buffer.from("…", "base64") or b'…', and a subtype`)
		}
		data, isHex, subtype = m[1], m[2] == "hex", strings.TrimPrefix(strings.TrimSpace(args[len(m[0]):]), ",")
	}
	n, err := parseSubtype(name, subtype)
	if err != nil {
		return Value{}, err
	}
	decode, encoding := parseBase64, "base64"
	if isHex {
		decode, encoding = parseHex, "hexadecimal"
	}
	b, err := decode(unquote(data))
	if err != nil {
		return Value{}, fmt.Errorf("%s(…): the string is not %s", name, encoding)
	}
	if isUUID(b) || isHex {
		return v.with(n, b)
	}
	// Servers write hexadecimal in errors. No text has a UUID, or the text of one, in both readings: they differ in length.
	if inHex, err := hex.DecodeString(unquote(data)); err == nil && isUUID(inHex) {
		v.Form += fmt.Sprintf(", read as %d hexadecimal digits: as base64 they are %d bytes, which are no UUID", 2*len(inHex), len(b))
		b = inHex
	}
	return v.with(n, b)
}

func parseSubtype(name, s string) (byte, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 0, 8)
	if err != nil {
		return 0, fmt.Errorf("%s(…): invalid subtype %q: must be from 0 to 255", name, shorten(strings.TrimSpace(s)))
	}
	return byte(n), nil
}

// isUUID reports whether b has the size of a UUID, or is the text of one.
func isUUID(b []byte) bool {
	_, isText := uuidtext.ParseOctets(b)
	return len(b) == 16 || isText
}

// ofBytes returns the value of bytes without a subtype, which were written in the way that how says.
func ofBytes(b []byte, how string) (Value, error) {
	v := Value{Form: fmt.Sprintf("%d bytes %s", len(b), how)}
	if u, ok := uuidtext.ParseOctets(b); ok {
		v.Octets, v.Text = u, string(b)
		return v, nil
	}
	if len(b) != 16 {
		return Value{}, fmt.Errorf("%s: a UUID has 16, and its text has 36 or 32", v.Form)
	}
	v.Octets = [16]byte(b)
	return v, nil
}

// with returns v with the bytes of a binary value.
func (v Value) with(subtype byte, b []byte) (Value, error) {
	if u, ok := uuidtext.ParseOctets(b); ok {
		v.Octets, v.Text, v.Subtype = u, string(b), &subtype
		return v, nil
	}
	if len(b) != 16 {
		return Value{}, fmt.Errorf("%d bytes of subtype %d: a UUID has 16, and its text has 36 or 32", len(b), subtype)
	}
	v.Octets, v.Subtype = [16]byte(b), &subtype
	if subtype == bson.TypeBinaryUUID {
		v.Representation = uuidrep.Standard
	}
	return v, nil
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	}
	return s
}

// extUUID matches $uuid of extended JSON.
var extUUID = regexp.MustCompile(`^\{\s*"\$uuid"\s*:\s*"([^"]*)"\s*\}$`)

// parseExtJSON parses one value of MongoDB Extended JSON, version 2 or 1. PyMongo writes $uuid without hyphens in its
// legacy mode, which the driver refuses.
func parseExtJSON(s string) (Value, error) {
	if m := extUUID.FindStringSubmatch(s); m != nil {
		if u, err := uuidtext.Parse(m[1]); err == nil {
			return Value{Form: "extended JSON"}.with(bson.TypeBinaryUUID, u[:])
		}
	}
	var doc struct{ V any }
	if err := bson.UnmarshalExtJSON([]byte(`{"v": `+s+`}`), false, &doc); err != nil {
		why := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "error decoding key v: ")
		return Value{}, fmt.Errorf("%q is not extended JSON: %s", shorten(s), shorten(why))
	}
	v := Value{Form: "extended JSON"}
	switch is := doc.V.(type) {
	case bson.Binary:
		return v.with(is.Subtype, is.Data)
	case bson.ObjectID:
		v.ObjectID = &is
		return v, nil
	}
	return Value{}, fmt.Errorf("%q: extended JSON must be $uuid, $binary or $oid", shorten(s))
}

// shorten limits an error to one line.
func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// Package explain describes an identifier, a UUID or an ObjectID, in any of the forms that shells,
// drivers and exports write.
package explain

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// Value is the result of parsing a form. It can be copied.
type Value struct {
	// ObjectID is set if the form is an ObjectID. The other fields are then unused.
	ObjectID *bson.ObjectID

	// Octets is the 16 bytes, in the order in which the value is stored, or in which it was written
	// if HasSubtype is false.
	Octets [16]byte

	// Subtype is the binary subtype that the form names.
	Subtype    byte
	HasSubtype bool

	// Representation is the representation that the form names: javaLegacy for JUUID("…"), standard
	// for UUID("…"). It is Unspecified if the form does not name one.
	Representation uuidrep.Representation

	// Form describes the form that was parsed.
	Form string
}

// ErrForm is wrapped by the error of Parse if the text is not in a known form.
var ErrForm = errors.New("not a UUID or ObjectID in a known form: must be a UUID, 16 or 12 bytes in hexadecimal, " +
	`16 bytes in base64, a ULID or TypeID, UUID("…"), BinData(3, "…"), HexData(4, "…"), JUUID("…"), ObjectId("…"), or extended JSON`)

// Parse parses s and ignores leading and trailing white space. The error wraps ErrForm, or
// describes the error in the form that s has.
func Parse(s string) (Value, error) {
	s = strings.TrimSpace(s)
	switch {
	case strings.HasPrefix(s, "{") && strings.Contains(s, "$"):
		return parseExtJSON(s)
	case strings.HasSuffix(s, ")"):
		return parseCall(s)
	case strings.Contains(s, "://"): // may contain a password
		return Value{}, fmt.Errorf("a connection string is %w", ErrForm)
	}
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	}
	return parseBare(s)
}

func parseBare(s string) (Value, error) {
	if u, err := parseUUIDText(s); err == nil {
		return Value{Octets: u, Form: "UUID"}, nil
	}
	octets, hexErr := parseHex(s)
	switch {
	case hexErr != nil:
	case len(octets) == 12:
		id := bson.ObjectID(octets)
		return Value{ObjectID: &id, Form: "12 bytes in hexadecimal"}, nil
	case len(octets) == 16:
		return Value{Octets: [16]byte(octets), Form: "16 bytes in hexadecimal"}, nil
	}
	if v, err := parseULID(s); err == nil {
		return v, nil
	}
	if v, err := parseTypeID(s); err == nil {
		return v, nil
	}
	if b, err := parseBase64(s); err == nil && len(b) == 16 {
		return Value{Octets: [16]byte(b), Form: "16 bytes in base64"}, nil
	}
	if hexErr == nil {
		return Value{}, fmt.Errorf("%d bytes in hexadecimal: a UUID has 16, an ObjectID 12", len(octets))
	}
	return Value{}, fmt.Errorf("%q: %w", shorten(s), ErrForm)
}

// parseUUIDText parses text with hyphens: plain, in braces or as a URN.
func parseUUIDText(s string) (uuid.UUID, error) {
	if len(s) == 32 {
		return uuid.Nil, errors.New("no hyphens")
	}
	return parseUUID(s)
}

func parseUUID(s string) (uuid.UUID, error) {
	if err := uuid.Validate(s); err != nil { // Parse accepts any two characters as the braces
		return uuid.Nil, err
	}
	return uuid.Parse(s)
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

// call matches NAME(arguments), optionally after new. The name is converted to lower case.
var call = regexp.MustCompile(`^(?:new\s+)?([A-Za-z][A-Za-z0-9.]*)\s*\((.*)\)$`)

// legacyCalls holds the functions that name a byte order: those of mongosh and Compass, of
// uuidhelpers.js of the C# driver for the legacy shell, and of graphical clients.
var legacyCalls = map[string]uuidrep.Representation{
	"legacycsharpuuid": uuidrep.CSharpLegacy, "csuuid": uuidrep.CSharpLegacy, "csguid": uuidrep.CSharpLegacy, "nuuid": uuidrep.CSharpLegacy,
	"legacyjavauuid": uuidrep.JavaLegacy, "juuid": uuidrep.JavaLegacy, "jguid": uuidrep.JavaLegacy,
	"legacypythonuuid": uuidrep.PythonLegacy, "pyuuid": uuidrep.PythonLegacy, "pyguid": uuidrep.PythonLegacy,
}

func parseCall(s string) (Value, error) {
	m := call.FindStringSubmatch(s)
	if m == nil {
		return Value{}, fmt.Errorf("%q: %w", shorten(s), ErrForm)
	}
	name, args := m[1], m[2]
	v := Value{Form: name + "(…)"}
	rep, legacy := legacyCalls[strings.ToLower(name)]
	switch {
	case legacy:
		u, err := uuidArgument(name, args)
		if err != nil {
			return Value{}, err
		}
		v.Octets, v.Subtype, v.HasSubtype, v.Representation = rep.Permute(u), bson.TypeBinaryUUIDOld, true, rep
		return v, nil
	case strings.EqualFold(name, "UUID"), strings.EqualFold(name, "GUID"):
		u, err := uuidArgument(name, args)
		if err != nil {
			return Value{}, err
		}
		v.Octets, v.Subtype, v.HasSubtype, v.Representation = u, bson.TypeBinaryUUID, true, uuidrep.Standard
		return v, nil
	case strings.EqualFold(name, "LUUID"):
		// The argument is the stored bytes, written like a UUID. The byte order remains unknown.
		u, err := uuidArgument(name, args)
		if err != nil {
			return Value{}, err
		}
		v.Octets, v.Subtype, v.HasSubtype = u, bson.TypeBinaryUUIDOld, true
		return v, nil
	case strings.EqualFold(name, "ObjectId"):
		b, err := parseHex(unquote(args))
		if err != nil || len(b) != 12 {
			return Value{}, fmt.Errorf("%s(…) requires 24 hexadecimal digits in quotes", name)
		}
		id := bson.ObjectID(b)
		v.ObjectID = &id
		return v, nil
	case strings.EqualFold(name, "BinData"), strings.EqualFold(name, "HexData"):
		subtype, data, found := strings.Cut(args, ",")
		if !found {
			return Value{}, fmt.Errorf("%s(…) requires a subtype and a quoted string", name)
		}
		return binary(v, name, subtype, data, strings.EqualFold(name, "HexData"))
	case strings.EqualFold(name, "Binary.createFromBase64"), strings.EqualFold(name, "Binary.createFromHexString"):
		data, subtype, found := strings.Cut(args, ",")
		if !found {
			subtype = "0"
		}
		return binary(v, name, subtype, data, !strings.HasSuffix(strings.ToLower(name), "base64"))
	case strings.EqualFold(name, "Binary"):
		return nodeBinary(v, args)
	}
	return Value{}, fmt.Errorf("%s(…): %w", shorten(name), ErrForm)
}

// bufferFrom matches how older shells print the data of a Binary.
var bufferFrom = regexp.MustCompile(`^Buffer\.from\(\s*("[^"]*"|'[^']*')\s*,\s*["'](hex|base64)["']\s*\)\s*,\s*([0-9A-Za-z]+)$`)

func nodeBinary(v Value, args string) (Value, error) {
	m := bufferFrom.FindStringSubmatch(strings.TrimSpace(args))
	if m == nil {
		return Value{}, errors.New(`Binary(…) requires Buffer.from("…", "hex") or Buffer.from("…", "base64"), and a subtype`)
	}
	return binary(v, "Binary", m[3], m[1], m[2] == "hex")
}

func binary(v Value, name, subtype, data string, isHex bool) (Value, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(subtype), 0, 8)
	if err != nil {
		return Value{}, fmt.Errorf("%s(…): invalid subtype %q: must be from 0 to 255", name, shorten(strings.TrimSpace(subtype)))
	}
	decode := parseBase64
	if isHex {
		decode = parseHex
	}
	b, err := decode(unquote(data))
	if err != nil {
		return Value{}, fmt.Errorf("%s(…): the string is not %s", name, map[bool]string{true: "hexadecimal", false: "base64"}[isHex])
	}
	return withOctets(v, byte(n), b)
}

func withOctets(v Value, subtype byte, b []byte) (Value, error) {
	if len(b) != 16 {
		return Value{}, fmt.Errorf("%d bytes of subtype %d: a UUID has 16", len(b), subtype)
	}
	v.Octets, v.Subtype, v.HasSubtype = [16]byte(b), subtype, true
	if subtype == bson.TypeBinaryUUID {
		v.Representation = uuidrep.Standard
	}
	return v, nil
}

func uuidArgument(name, args string) (uuid.UUID, error) {
	s := unquote(args)
	u, err := parseUUID(s)
	if err != nil {
		return uuid.Nil, fmt.Errorf("%s(…): %q is not a UUID", name, shorten(s))
	}
	return u, nil
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	}
	return s
}

// parseExtJSON parses one value of MongoDB Extended JSON, version 2 or 1.
func parseExtJSON(s string) (Value, error) {
	var doc struct {
		UUID   *string         `json:"$uuid"`
		OID    *string         `json:"$oid"`
		Binary json.RawMessage `json:"$binary"`
		Type   *string         `json:"$type"`
	}
	if err := json.Unmarshal([]byte(s), &doc); err != nil {
		return Value{}, fmt.Errorf("%q is not JSON", shorten(s))
	}
	switch {
	case doc.UUID != nil:
		u, err := parseUUID(*doc.UUID)
		if err != nil {
			return Value{}, fmt.Errorf("$uuid: %q is not a UUID", shorten(*doc.UUID))
		}
		return withOctets(Value{Form: "extended JSON, $uuid"}, bson.TypeBinaryUUID, u[:])
	case doc.OID != nil:
		id, err := bson.ObjectIDFromHex(*doc.OID)
		if err != nil {
			return Value{}, fmt.Errorf("$oid: %q is not 24 hexadecimal digits", shorten(*doc.OID))
		}
		return Value{ObjectID: &id, Form: "extended JSON, $oid"}, nil
	case doc.Binary != nil:
		return parseExtBinary(doc.Binary, doc.Type)
	}
	return Value{}, fmt.Errorf("%q: extended JSON must be $uuid, $binary or $oid", shorten(s))
}

func parseExtBinary(raw json.RawMessage, typ *string) (Value, error) {
	var v2 struct {
		Base64  *string `json:"base64"`
		SubType *string `json:"subType"`
	}
	var data, subtype string
	if err := json.Unmarshal(raw, &v2); err == nil && v2.Base64 != nil && v2.SubType != nil {
		data, subtype = *v2.Base64, *v2.SubType
	} else if err := json.Unmarshal(raw, &data); err == nil && typ != nil {
		subtype = *typ
	} else {
		return Value{}, errors.New(`$binary requires "base64" and "subType", or the older "$type"`)
	}
	n, err := strconv.ParseUint(subtype, 16, 8)
	if err != nil {
		return Value{}, fmt.Errorf("$binary: invalid subtype %q: must be one or two hexadecimal digits", shorten(subtype))
	}
	b, err := parseBase64(data)
	if err != nil {
		return Value{}, errors.New("$binary: the data is not base64")
	}
	return withOctets(Value{Form: "extended JSON, $binary"}, byte(n), b)
}

// shorten limits an error to one line.
func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// Package shell writes values of BSON as the expressions of mongosh, for commands that a person runs.
package shell

import (
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Expression returns an expression of mongosh, on one line, for a value that bson.Marshal writes as a document. The older
// shell mongo reads it, too.
func Expression(doc any) string {
	b, err := bson.Marshal(doc)
	if err != nil {
		return fmt.Sprintf("/* %v */", err)
	}
	return document(b, false)
}

// ValueOf returns an expression for a value.
func ValueOf(v bson.RawValue) string { return value(v) }

// Call returns a call of a function with the arguments, which are expressions.
func Call(function string, args ...string) string {
	return function + "(" + strings.Join(args, ", ") + ")"
}

// Database returns an expression for a database.
func Database(name string) string { return Call("db.getSiblingDB", Text(name)) }

// plain matches a name that needs no quotes.
var plain = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

func document(doc bson.Raw, array bool) string {
	elements, err := doc.Elements()
	if err != nil {
		return fmt.Sprintf("/* %v */", err)
	}
	parts := make([]string, len(elements))
	for i, e := range elements {
		parts[i] = value(e.Value())
		switch key := e.Key(); {
		case array:
		case key == "__proto__": // which sets the prototype of an object
			parts[i] = "[" + Text(key) + "]: " + parts[i]
		case plain.MatchString(key):
			parts[i] = key + ": " + parts[i]
		default:
			parts[i] = Text(key) + ": " + parts[i]
		}
	}
	if array {
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Text returns a string literal.
func Text(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff:
			fmt.Fprintf(&b, `\u%04x`, r) // control characters, and those that change the direction of text
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func value(v bson.RawValue) string {
	if v.Validate() != nil {
		return "/* damaged */"
	}
	switch v.Type {
	case bson.TypeDouble:
		return number(v.Double())
	case bson.TypeString:
		return Text(v.StringValue())
	case bson.TypeEmbeddedDocument:
		return document(v.Document(), false)
	case bson.TypeArray:
		return document(bson.Raw(v.Array()), true)
	case bson.TypeBinary:
		subtype, data := v.Binary()
		return fmt.Sprintf("BinData(%d, %q)", subtype, base64.StdEncoding.EncodeToString(data))
	case bson.TypeUndefined:
		return "undefined"
	case bson.TypeObjectID:
		return fmt.Sprintf("ObjectId(%q)", v.ObjectID().Hex())
	case bson.TypeBoolean:
		return strconv.FormatBool(v.Boolean())
	case bson.TypeDateTime:
		if t := v.Time().UTC(); t.Year() >= 0 && t.Year() <= 9999 {
			return fmt.Sprintf("ISODate(%q)", t.Format("2006-01-02T15:04:05.000Z07:00"))
		}
		return fmt.Sprintf("new Date(%d)", v.DateTime())
	case bson.TypeNull:
		return "null"
	case bson.TypeRegex:
		pattern, options := v.Regex()
		return Call("RegExp", Text(pattern), Text(options))
	case bson.TypeJavaScript:
		return Call("Code", Text(v.JavaScript()))
	case bson.TypeInt32:
		return strconv.Itoa(int(v.Int32()))
	case bson.TypeTimestamp:
		t, i := v.Timestamp()
		return fmt.Sprintf("Timestamp(%d, %d)", t, i)
	case bson.TypeInt64:
		return fmt.Sprintf("NumberLong(%q)", strconv.FormatInt(v.Int64(), 10))
	case bson.TypeDecimal128:
		return fmt.Sprintf("NumberDecimal(%q)", v.Decimal128().String())
	case bson.TypeMinKey:
		return "MinKey()"
	case bson.TypeMaxKey:
		return "MaxKey()"
	}
	return fmt.Sprintf("/* %s */", v.Type)
}

func number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

package explain

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/objectidgen"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// Explanation describes a Value. One of the two fields is set.
type Explanation struct {
	Form     string    `json:"form"`
	UUID     *UUID     `json:"uuid,omitempty"`
	ObjectID *ObjectID `json:"objectId,omitempty"`
}

// UUID describes 16 bytes.
type UUID struct {
	// Value is the UUID, if the form determines it. Otherwise it is the UUID in network order, and
	// Ambiguous is true.
	Value     Reading `json:"value"`
	Ambiguous bool    `json:"ambiguous"`

	Stored  []Stored        `json:"stored"`            // Value in each representation
	Read    []Reading       `json:"read"`              // the input, in each byte order
	Drivers []DriverReading `json:"drivers,omitempty"` // what drivers decode from the input

	Octets  string `json:"bytes"`             // of the input, or of the UUID if that is text
	Text    string `json:"text,omitempty"`    // the bytes of the input, if they are the text of a UUID
	Subtype *byte  `json:"subtype,omitempty"` // of the input
}

// Reading is a UUID and the meaning of its bits.
type Reading struct {
	Order   string `json:"order"`
	UUID    string `json:"uuid"`
	Variant string `json:"variant"`
	Version string `json:"version"` // empty if the variant is not that of RFC 9562
	// Time is the time of versions 1, 6 and 7, up to the year 9999.
	Time *time.Time `json:"time,omitempty"`
	Fits bool       `json:"fits"` // the variant and the version are those of RFC 9562

	Others []Other `json:"others,omitempty"` // what else the bits may be
}

// Stored is a UUID in one representation.
type Stored struct {
	Representation string `json:"representation"`
	Subtype        byte   `json:"subtype"`
	Octets         string `json:"bytes"`
	Base64         string `json:"base64"`
	Paste          string `json:"mongosh"`
	Legacy         string `json:"legacyUuid,omitempty"` // of subtype 3: the call that newer versions of mongosh and Compass read
	ExtJSON        string `json:"extendedJson"`
}

// DriverReading is what a program decodes from the bytes.
type DriverReading struct {
	Driver string `json:"driver"`
	Prints string `json:"prints"`
}

// ObjectID describes 12 bytes.
type ObjectID struct {
	Hex     string    `json:"hex"`
	Time    time.Time `json:"time"`
	Seconds uint32    `json:"seconds"`
	Process string    `json:"process"`
	Counter uint32    `json:"counter"`
	Base64  string    `json:"base64"`
	Paste   string    `json:"mongosh"`
	ExtJSON string    `json:"extendedJson"`
}

// Explain describes v.
func Explain(v Value, o Options) Explanation {
	if o.Now == nil {
		o.Now = time.Now
	}
	if v.ObjectID != nil {
		return Explanation{Form: v.Form, ObjectID: explainObjectID(*v.ObjectID)}
	}
	return Explanation{Form: v.Form, UUID: o.explainUUID(v)}
}

func explainObjectID(id bson.ObjectID) *ObjectID {
	p := objectidgen.Decode(id)
	return &ObjectID{
		Hex:     id.Hex(),
		Time:    id.Timestamp().UTC(),
		Seconds: p.Seconds,
		Process: hex.EncodeToString(p.Process[:]),
		Counter: p.Counter,
		Base64:  base64.StdEncoding.EncodeToString(id[:]),
		Paste:   fmt.Sprintf("ObjectId(%q)", id.Hex()),
		ExtJSON: fmt.Sprintf(`{"$oid":%q}`, id.Hex()),
	}
}

func (o Options) explainUUID(v Value) *UUID {
	// Subtype 4 has one order, and text without a subtype is the UUID itself. Both are read in
	// network order.
	u := uuid.UUID(v.Representation.Permute(v.Octets))
	isText := v.Text != "" || v.Form == formUUID || v.Form == formULID || strings.HasPrefix(v.Form, formTypeID)
	e := &UUID{
		Octets: hex.EncodeToString(v.Octets[:]), Text: v.Text, Subtype: v.Subtype,
		Value: o.read(v.Representation.String(), u), Ambiguous: v.Representation == uuidrep.Unspecified && !isText,
		Read: []Reading{
			o.read("network (standard, pythonLegacy)", v.Octets),
		},
	}
	for _, r := range kinds.Orders[1:] {
		e.Read = append(e.Read, o.read(r.String(), r.Permute(v.Octets)))
	}
	if e.Ambiguous {
		e.Value.Order = "network"
	}
	if v.Form == formULID { // milliseconds since 1970 in the first six bytes
		t := inJSON(time.UnixMilli(int64(binary.BigEndian.Uint64(v.Octets[:]) >> 16)).UTC())
		e.Value.Others = append([]Other{{Format: formULID, Time: t}}, e.Value.Others...)
	}
	for _, r := range append([]uuidrep.Representation{uuidrep.Standard}, kinds.Orders[:]...) {
		if k, err := kinds.Parse(r.String()); err == nil {
			e.Stored = append(e.Stored, store(u, k))
		}
	}
	switch {
	case v.Subtype == nil:
	case v.Text != "":
		e.Drivers = driversOfText(*v.Subtype, v.Text)
	default:
		e.Drivers = drivers(*v.Subtype, v.Octets)
	}
	return e
}

func store(u uuid.UUID, k kinds.Kind) Stored {
	octets := k.Order.Permute(u)
	b64 := base64.StdEncoding.EncodeToString(octets[:])
	s := Stored{
		Representation: k.Name,
		Subtype:        k.Subtype,
		Octets:         hex.EncodeToString(octets[:]),
		Base64:         b64,
		Paste:          Paste(k.Subtype, octets),
		ExtJSON:        fmt.Sprintf(`{"$binary":{"base64":%q,"subType":"%02x"}}`, b64, k.Subtype),
	}
	if k.Subtype == bson.TypeBinaryUUIDOld {
		s.Legacy = fmt.Sprintf("%s(%q)", strings.Fields(k.Calls)[0], u)
	}
	return s
}

// Paste returns an expression for mongosh that has a binary value of 16 bytes.
func Paste(subtype byte, octets [16]byte) string {
	if subtype == bson.TypeBinaryUUID {
		return fmt.Sprintf("UUID(%q)", uuid.UUID(octets))
	}
	return fmt.Sprintf("BinData(%d, %q)", subtype, base64.StdEncoding.EncodeToString(octets[:]))
}

var versions = map[uuid.Version]string{
	1: "1, time-based (100 ns since 1582)", 2: "2, DCE security", 3: "3, name-based (MD5)", 4: "4, random",
	5: "5, name-based (SHA-1)", 6: "6, time-ordered (100 ns since 1582)", 7: "7, time-ordered (milliseconds since 1970)",
	8: "8, custom",
}

var variants = map[uuid.Variant]string{
	uuid.Reserved: "NCS, reserved", uuid.RFC4122: "RFC 9562", uuid.Microsoft: "Microsoft, reserved", uuid.Future: "reserved for the future",
}

func (o Options) read(order string, u uuid.UUID) Reading {
	r := Reading{Order: order, UUID: u.String(), Variant: variants[u.Variant()], Others: o.others(u)}
	switch {
	case u == uuid.Nil:
		r.Variant = "none: the nil UUID"
	case u == uuid.Max:
		r.Variant = "none: the max UUID"
	case u.Variant() == uuid.RFC4122:
		if r.Version, r.Fits = versions[u.Version()]; !r.Fits {
			r.Version = fmt.Sprintf("%d, not defined", u.Version())
		}
		if t, err := uuidgen.Time(u); err == nil {
			if u.Version() == 7 { // only some generators put a fraction of a millisecond after it
				t = t.Truncate(time.Millisecond)
			}
			r.Time = inJSON(t)
		}
	}
	return r
}

// driversOfText is like drivers, for the text of a UUID, which no setting makes a UUID of.
func driversOfText(subtype byte, text string) []DriverReading {
	return []DriverReading{
		{"mongosh", fmt.Sprintf("Binary.createFromBase64('%s', %d)", base64.StdEncoding.EncodeToString([]byte(text)), subtype)},
		{"Go, bson.Binary in any", fmt.Sprintf("{Subtype:%d Data:%v}", subtype, []byte(text))},
	}
}

// drivers implements the table in "Handling of Native UUID Types", section "Implicit decoding", and
// adds what the shells print.
func drivers(subtype byte, octets [16]byte) []DriverReading {
	b64 := base64.StdEncoding.EncodeToString(octets[:])
	plain := fmt.Sprintf("Binary, subtype %d, %x", subtype, octets)
	setting := func(r uuidrep.Representation) string {
		if want, err := r.Subtype(); err == nil && want == subtype {
			return uuid.UUID(r.Permute(octets)).String()
		}
		return plain
	}
	shell := fmt.Sprintf("Binary.createFromBase64('%s', %d)", b64, subtype)
	oldShell := fmt.Sprintf(`BinData(%d,%q)`, subtype, b64)
	if subtype == bson.TypeBinaryUUID {
		shell = fmt.Sprintf("UUID('%s')", uuid.UUID(octets))
		oldShell = fmt.Sprintf("UUID(%q)", uuid.UUID(octets))
	}
	all := []DriverReading{
		{"mongosh", shell},
		{"mongo (the older shell)", oldShell},
		{"Go, bson.Binary in any", fmt.Sprintf("{Subtype:%d Data:%v}", subtype, octets[:])},
		{"Java, Python, C# with standard; Go with bsonids", setting(uuidrep.Standard)},
	}
	for _, k := range kinds.Where(func(k kinds.Kind) bool { return k.Default != "" }) {
		all = append(all, DriverReading{fmt.Sprintf("… with %s (%s: the default)", k.Name, k.Default), setting(k.Order)})
	}
	return append(all, DriverReading{"… with unspecified (today's default)", plain})
}

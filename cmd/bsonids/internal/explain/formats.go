package explain

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidgen/i3core"
	"github.com/bsonids/bsonids/uuidgen/peabody01"
	"github.com/bsonids/bsonids/uuidrep"
)

// Other is a format that the bits of a UUID fit, in addition to what its version says. Nothing in the bits
// tells which format a UUID was made in.
type Other struct {
	Format string     `json:"format"`
	Time   *time.Time `json:"time,omitempty"`
	Fields string     `json:"fields,omitempty"` // as name=value
}

// Options says what Explain shows.
type Options struct {
	I3Core bool             // the formats of the i3core library, too
	Now    func() time.Time // nil: time.Now
}

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

var (
	draftBegins  = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC) // of the draft's version 7 and of version 8
	orderedTimes = []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy}
)

// others returns the formats that the bits of u may be in. Their instants are from 2021 until in a
// year: almost all other bits are far from that.
func (o Options) others(u uuid.UUID) (others []Other) {
	limit := o.now().AddDate(1, 0, 0)
	add := func(format string, t time.Time, err error) {
		if err == nil && !t.Before(draftBegins) && !t.After(limit) {
			others = append(others, Other{Format: format, Time: &t})
		}
	}
	if u[8]>>6 == 0b10 {
		switch u.Version() {
		case 7:
			if t, err := uuidgen.Time(u); err == nil && t.After(limit) {
				t, err := peabody01.Time(u)
				add("version 7 of draft-peabody-dispatch-new-uuid-format-01", t, err)
			}
		case 8:
			for _, r := range orderedTimes {
				t, err := uuidgen.TimeV8(u, r)
				add("version 8 of bsonids, in the order of "+r.String(), t, err)
			}
		}
	}
	if o.I3Core {
		others = append(others, i3coreFormats(u)...)
	}
	return others
}

// i3coreFormats returns the formats of the i3core library that u can be read in.
func i3coreFormats(u uuid.UUID) (others []Other) {
	add := func(format string, t *time.Time, fields string, err error) {
		if err == nil {
			others = append(others, Other{"i3core " + format, t, fields})
		}
	}
	at := func(t time.Time) *time.Time {
		if t.Year() > 9999 {
			return nil
		}
		return &t
	}
	timeBased, err := i3core.DecodeTimeBased(u)
	add("time-based", at(timeBased.Time()), fmt.Sprintf("sequence=%d node=%x", timeBased.Sequence, timeBased.Node), err)
	random, err := i3core.DecodeRandom(u)
	add("random", nil, fmt.Sprintf("custom=0x%02x", random.Custom), err)
	nameBased, err := i3core.DecodeNameBased(u)
	add("name-based", nil, fmt.Sprintf("hash=%x", nameBased.Hash), err)
	interaction, err := i3core.DecodeInteraction(u)
	add("legacy interaction id", nil, fmt.Sprintf("number=%010d flags=0x%02x resolved=%t", interaction.Number, interaction.Flags,
		interaction.Resolved()), err)
	notifier, err := i3core.DecodeNotifier(u)
	add("notifier", at(notifier.Time()), fmt.Sprintf("custom=0x%02x connection=%d node=%x", notifier.Custom, notifier.ConnectionID,
		notifier.NodeAddress), err)
	sequential, err := i3core.DecodeSequential(u, uuidrep.CSharpLegacy.Permute(u)[7]>>4)
	add("sequential", at(sequential.Time()), fmt.Sprintf("version=%d dbms=%q random1=%d counter=%d", sequential.Version,
		sequential.DBMS, sequential.Random1, uint64(sequential.CounterHi)<<16|uint64(sequential.CounterLo)), err)
	return others
}

// base32 is the alphabet of Crockford, in which ULID and TypeID write 128 bits as 26 characters.
const base32 = "0123456789abcdefghjkmnpqrstvwxyz"

var errBase32 = errors.New("not 26 characters of base32")

// parseBase32 parses 26 characters in lower case.
func parseBase32(s string) (octets [16]byte, err error) {
	if len(s) != 26 || s[0] > '7' {
		return octets, errBase32
	}
	var high, low uint64
	for i := range len(s) {
		digit := strings.IndexByte(base32, s[i])
		if digit < 0 {
			return octets, errBase32
		}
		high, low = high<<5|low>>59, low<<5|uint64(digit)
	}
	for i := range 8 {
		octets[i], octets[8+i] = byte(high>>(56-8*i)), byte(low>>(56-8*i))
	}
	return octets, nil
}

// parseULID parses the text of a ULID, in either case.
func parseULID(s string) (Value, error) {
	octets, err := parseBase32(strings.ToLower(s))
	return Value{Octets: octets, Form: formULID}, err
}

// parseTypeID parses a TypeID: a prefix of lower-case letters and underscores, an underscore, and a
// UUID in base32.
func parseTypeID(s string) (Value, error) {
	i := strings.LastIndexByte(s, '_')
	if i < 1 || i > 63 || strings.Trim(s[:i], "abcdefghijklmnopqrstuvwxyz_") != "" || s[0] == '_' || s[i-1] == '_' {
		return Value{}, errBase32
	}
	octets, err := parseBase32(s[i+1:])
	return Value{Octets: octets, Form: formTypeID + s[:i]}, err
}

const (
	formULID   = "ULID"
	formTypeID = "TypeID with the type "
)

// ulidTime returns the time of a ULID: milliseconds since 1970 in the first six bytes.
func ulidTime(octets [16]byte) *time.Time {
	var ms int64
	for _, b := range octets[:6] {
		ms = ms<<8 | int64(b)
	}
	t := time.UnixMilli(ms).UTC()
	if t.Year() > 9999 {
		return nil
	}
	return &t
}

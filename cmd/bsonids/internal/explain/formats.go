package explain

import (
	"fmt"
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

var (
	draftBegins  = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC) // of the draft's version 7 and of version 8
	orderedTimes = []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy}
)

// others returns the formats that the bits of u may be in. Their instants are from 2021 until in a
// year: almost all other bits are far from that.
func (o Options) others(u uuid.UUID) (others []Other) {
	limit := o.Now().AddDate(1, 0, 0)
	add := func(format string, t time.Time, err error) {
		if err == nil && !t.Before(draftBegins) && !t.After(limit) {
			others = append(others, Other{Format: format, Time: &t})
		}
	}
	switch {
	case u.Variant() != uuid.RFC4122:
	case u.Version() == 7:
		if t, err := uuidgen.Time(u); err == nil && t.After(limit) {
			t, err := peabody01.Time(u)
			add("version 7 of draft-peabody-dispatch-new-uuid-format-01", t, err)
		}
	case u.Version() == 8:
		for _, r := range orderedTimes {
			t, err := uuidgen.TimeV8(u, r)
			add("version 8 of bsonids, in the order of "+r.String(), t, err)
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
	timeBased, err := i3core.DecodeTimeBased(u)
	add("time-based", inJSON(timeBased.Time()), fmt.Sprintf("sequence=%d node=%x", timeBased.Sequence, timeBased.Node), err)
	random, err := i3core.DecodeRandom(u)
	add("random", nil, fmt.Sprintf("custom=0x%02x", random.Custom), err)
	nameBased, err := i3core.DecodeNameBased(u)
	add("name-based", nil, fmt.Sprintf("hash=%x", nameBased.Hash), err)
	interaction, err := i3core.DecodeInteraction(u)
	add("legacy interaction id", nil, fmt.Sprintf("number=%010d flags=0x%02x resolved=%t", interaction.Number, interaction.Flags,
		interaction.Resolved()), err)
	notifier, err := i3core.DecodeNotifier(u)
	add("notifier", inJSON(notifier.Time()), fmt.Sprintf("custom=0x%02x connection=%d node=%x", notifier.Custom, notifier.ConnectionID,
		notifier.NodeAddress), err)
	sequential, err := i3core.DecodeSequential(u, uuidrep.CSharpLegacy.Permute(u)[7]>>4)
	add("sequential", inJSON(sequential.Time()), fmt.Sprintf("version=%d dbms=%q random1=%d counter=%d", sequential.Version,
		sequential.DBMS, sequential.Random1, uint64(sequential.CounterHi)<<16|uint64(sequential.CounterLo)), err)
	return others
}

// inJSON returns t up to the year 9999, the last one in RFC 3339, and otherwise nil.
func inJSON(t time.Time) *time.Time {
	if t.Year() > 9999 {
		return nil
	}
	return &t
}

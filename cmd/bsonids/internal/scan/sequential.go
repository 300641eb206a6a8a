package scan

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Sequential GUIDs have no version, so that nothing in them proves a byte order. Two patterns tell them from random
// bytes, and are said to a person: places in which most values have the same byte, and a time in a known place, which
// may be there in some orders only.

// A layout says where a generator of sequential GUIDs puts the time, in network order.
type layout struct {
	of   string
	time func(u [16]byte) time.Time
}

// The beginnings of time of .NET and of SQL Server, in seconds before 1970.
const (
	before1    = 62_135_596_800
	before1900 = 2_208_988_800
)

// layouts are those that the sources of the generators show: NewIdGenerator, SequentialGuidValueGenerator, SequentialGuidGenerator
// and GuidCombGenerator.
var layouts = []layout{
	{"NewId of MassTransit and Entity Framework Core put one", func(u [16]byte) time.Time { return ticks(number(u[10:16])<<16 | number(u[8:10])) }},
	{"NextSequentialGuid of MassTransit puts one", func(u [16]byte) time.Time { return ticks(number(u[:8])) }},
	{"ABP puts one (SequentialAtEnd)", func(u [16]byte) time.Time { return time.UnixMilli(int64(number(u[10:])) - 1000*before1) }},
	{"ABP puts one (SequentialAsString)", func(u [16]byte) time.Time { return time.UnixMilli(int64(number(u[:6])) - 1000*before1) }},
	{"COMBs of NHibernate and SQL Server have one", func(u [16]byte) time.Time { // days, and 1/300 s of the day
		day, at := int64(number(u[10:12])), int64(number(u[12:]))
		if at >= 86_400*300 {
			return time.Time{}
		}
		return time.Unix(day*86_400+at/300-before1900, 0)
	}},
}

// ticks returns the time of a number of 100 ns since the year 1.
func ticks(n uint64) time.Time { return time.Unix(int64(n/1e7)-before1, int64(n%1e7)*100) }

// number returns up to eight bytes as a number.
func number(b []byte) uint64 {
	var n [8]byte
	copy(n[8-len(b):], b)
	return binary.BigEndian.Uint64(n[:])
}

const (
	fewest     = 10 // values that are enough for a pattern
	places     = 6  // in which values are the same
	inOnePlace = 0.9
)

// firstLayout is before the times of the layouts.
var firstLayout = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)

// patterns describes what most of the values have in common, which are as they are stored. orders are what e says about
// the orders. No pattern proves an order.
func patterns(values [][16]byte, orders []decide.Reading, now time.Time) (found []string) {
	if len(values) < fewest {
		return nil
	}
	if n, in := shared(values); in >= places {
		found = append(found, fmt.Sprintf("%d of %d values that were compared have the same bytes in %d of 16 places, as sequential GUIDs and counters have", n, len(values), in))
	}
	for _, l := range layouts {
		var most, others []string
		for o, r := range kinds.Orders {
			n, times := 0, make(map[time.Time]bool)
			for _, v := range values {
				if t := l.time(r.Permute(v)); t.After(firstLayout) && t.Before(now.Add(24*time.Hour)) {
					n++
					times[t] = true
				}
			}
			if len(times) > 1 && 2*n > len(values) { // one time may be bytes that are the same in all values
				most = append(most, fmt.Sprintf("%d of %d as %s", n, len(values), orders[o].Order))
			} else {
				others = append(others, fmt.Sprintf("%d as %s", n, orders[o].Order))
			}
		}
		if len(most) > 0 && len(others) > 0 {
			found = append(found, fmt.Sprintf("plausible times where %s, which is no proof: %s; %s", l.of, strings.Join(most, ", "), strings.Join(others, ", ")))
		}
	}
	return found
}

// shared returns in how many places most values have the same byte, and how many values have all of these bytes. It returns
// 0 places if these values are not most of them.
func shared(values [][16]byte) (n, in int) {
	var common [16]int
	for i := range common {
		var counts [256]int
		for _, v := range values {
			counts[v[i]]++
		}
		common[i] = -1
		for b, c := range counts {
			if float64(c) >= inOnePlace*float64(len(values)) {
				common[i] = b
				in++
			}
		}
	}
	for _, v := range values {
		all := true
		for i, b := range common {
			all = all && (b < 0 || b == int(v[i]))
		}
		if all {
			n++
		}
	}
	if 2*n <= len(values) {
		return 0, 0
	}
	return n, in
}

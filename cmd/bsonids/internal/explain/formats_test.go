package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidgen/i3core"
	"github.com/bsonids/bsonids/uuidrep"
)

var presentDay = Options{Now: func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }}

func others(t *testing.T, s string, o Options) []Other {
	t.Helper()
	return explained(t, s, o).UUID.Value.Others
}

// The draft's version 7 is shown beside that of RFC 9562 if the latter is far in the future. The values are published samples
// of the draft, and vectors of the RFC.
func TestOthers(t *testing.T) {
	for s, want := range map[string]string{
		"060a859e-e10d-7d37-8720-52c692c8990f": "2021-05-22T01:10:06.0659Z",
		"061cdd23-93a0-73df-a200-6ff3e72d92e9": "2021-12-30T15:37:29.2266Z",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398f": "",
		"919108f7-52d1-4320-9bac-f847db4148a8": "",
		"5c146b14-3c52-8afd-938a-375d0df1fbf6": "", // version 8 of RFC 9562, appendix B.2: a hash
		"00000000-0000-7000-8000-000000000000": "",
	} {
		got := others(t, s, presentDay)
		if want == "" {
			if len(got) != 0 {
				t.Errorf("%s: %+v", s, got)
			}
			continue
		}
		if len(got) != 1 || !strings.Contains(got[0].Format, "draft") || got[0].Time.Round(100*time.Microsecond).Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %+v, want %s", s, got, want)
		}
	}
	// A year later than the RFC's reading, nothing speaks for the draft.
	late := Options{Now: func() time.Time { return time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }}
	if got := others(t, "060a859e-e10d-7d37-8720-52c692c8990f", late); len(got) != 0 {
		t.Errorf("in 2300: %+v", got)
	}
}

func TestOthersV8(t *testing.T) {
	at := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, r := range orderedTimes {
		g, err := uuidgen.NewV8Generator(r, uuidgen.WithClock(func() time.Time { return at }))
		if err != nil {
			t.Fatal(err)
		}
		u, err := g.NewUUID()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, o := range others(t, u.String(), presentDay) {
			found = found || strings.Contains(o.Format, r.String()) && o.Time.Equal(at)
		}
		if !found {
			t.Errorf("%v: %v is not read", r, u)
		}
		// From stored bytes the order is that of the representation.
		e := explained(t, Paste(3, r.Permute(u)), presentDay).UUID
		read := e.Read[1]
		if r == uuidrep.JavaLegacy {
			read = e.Read[2]
		}
		if !e.Ambiguous || len(read.Others) == 0 || !read.Others[0].Time.Equal(at) && !read.Others[len(read.Others)-1].Time.Equal(at) {
			t.Errorf("%v stored: %+v", r, read)
		}
	}
}

// The formats of i3core are shown on request. The vectors are made of the document's layouts.
func TestI3Core(t *testing.T) {
	o := presentDay
	o.I3Core = true
	notifier, err := i3core.Notifier{InstanceSequence: 631152000000000, Custom: 0xAB, ConnectionID: 0x1234, NodeAddress: [6]byte{2, 0x42, 0xac, 0x12, 0, 2}}.UUID()
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[string]string{
		"00000000-0000-c000-8000-001234567890": "i3core legacy interaction id, number=1234567890 flags=0x00 resolved=false",
		notifier.String():                      "i3core notifier 2020-01-01T00:00:00Z, custom=0xab connection=4660 node=0242ac120002",
		"04030201-0605-d007-8abc-112233445566": `i3core sequential 2008-12-27T09:55:52.306183Z, version=13 dbms="binary" random1=2748 counter=18838586676582`,
		"919108f7-52d1-4320-9bac-f847db4148a8": "i3core random, custom=0x32",
		"5df41881-3aed-3515-88a7-2f4a814cf09e": "i3core name-based, hash=5df418813aed051508a72f4a814cf09e",
	} {
		if got := others(t, s, presentDay); len(got) != 0 {
			t.Errorf("%s without a request: %+v", s, got)
		}
		var all []string
		for _, o := range others(t, s, o) {
			line := o.Format
			if o.Time != nil {
				line += " " + o.Time.Format(time.RFC3339Nano)
			}
			all = append(all, line+", "+o.Fields)
		}
		if !strings.Contains(strings.Join(all, "\n"), want[:strings.Index(want, ",")]) || !strings.Contains(strings.Join(all, "\n"), want[strings.Index(want, ","):]) {
			t.Errorf("%s: %q, want %q", s, all, want)
		}
	}
	if got := others(t, uuid.Nil.String(), o); len(got) != 0 {
		t.Errorf("nil: %+v", got)
	}
}

// The values are examples of the two specifications.
func TestBase32(t *testing.T) {
	for s, want := range map[string]string{
		"prefix_0123456789abcdefghjkmnpqrs":  "0110c853-1d09-52d8-d73e-1194e95b5f19",
		"prefix_01h455vb4pex5vsknk084sn02q":  "01890a5d-ac96-774b-bcce-b302099a8057",
		"pre_fix_00000000000000000000000000": "00000000-0000-0000-0000-000000000000",
		"7zzzzzzzzzzzzzzzzzzzzzzzzz":         "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ":         "ffffffff-ffff-ffff-ffff-ffffffffffff",
	} {
		v, err := Parse(s)
		if err != nil || uuid.UUID(v.Octets).String() != want || Explain(v, presentDay).UUID.Ambiguous {
			t.Errorf("%s: %+v, %v; want %s", s, v, err, want)
		}
	}
	got := others(t, "01ARYZ6S41TSV4RRFFQ69G5FAV", presentDay)
	if len(got) != 1 || got[0].Format != "ULID" || got[0].Time.UnixMilli() != 1469918176385 {
		t.Errorf("ULID: %+v", got)
	}
	for _, s := range []string{
		"8zzzzzzzzzzzzzzzzzzzzzzzzz", "01ARYZ6S41TSV4RRFFQ69G5FAU", "01ARYZ6S41TSV4RRFFQ69G5FA", "Prefix_01h455vb4pex5vsknk084sn02q",
		"prefix_01H455vb4pex5vsknk084sn02q", "_01h455vb4pex5vsknk084sn02q", "prefix__01h455vb4pex5vsknk084sn02q",
		strings.Repeat("a", 64) + "_01h455vb4pex5vsknk084sn02q", "prefix_8zzzzzzzzzzzzzzzzzzzzzzzzz", "pre1_01h455vb4pex5vsknk084sn02q",
	} {
		if v, err := Parse(s); err == nil {
			t.Errorf("%s: %+v", s, v)
		}
	}
}

package convert

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The byte strings of 00112233-4455-6677-8899-aabbccddeeff in the driver specification's document on UUIDs.
var stored = map[string]struct {
	subtype byte
	octets  string
}{
	"standard":     {4, "00112233445566778899aabbccddeeff"},
	"pythonLegacy": {3, "00112233445566778899aabbccddeeff"},
	"csharpLegacy": {3, "33221100554477668899aabbccddeeff"},
	"javaLegacy":   {3, "7766554433221100ffeeddccbbaa9988"},
	"generic":      {0, "00112233445566778899aabbccddeeff"},
}

func value(t testing.TB, kind string) bson.Binary {
	t.Helper()
	b, err := hex.DecodeString(stored[kind].octets)
	if err != nil {
		t.Fatal(err)
	}
	return bson.Binary{Subtype: stored[kind].subtype, Data: b}
}

func marshal(t testing.TB, v any) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func conversion(t testing.TB, from, to string, fields ...string) Conversion {
	t.Helper()
	c, err := NewConversion(from, to, fields)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every pair of kinds, by the specification's byte strings, and only what has the subtype and length of --from.
func TestPlanAndRewrite(t *testing.T) {
	for from := range stored {
		for to := range stored {
			if from == to || to == "generic" {
				continue
			}
			c := conversion(t, from, to)
			doc := func(v bson.Binary) bson.D {
				return bson.D{
					{Key: "_id", Value: 1}, {Key: "a", Value: v}, {Key: "deep", Value: bson.A{bson.D{{Key: "b", Value: bson.A{v, "x", v}}}}},
					{Key: "other", Value: bson.Binary{Subtype: 5, Data: v.Data}}, {Key: "short", Value: bson.Binary{Subtype: v.Subtype, Data: v.Data[:15]}},
					{Key: "text", Value: "00112233-4455-6677-8899-aabbccddeeff"}, {Key: "md5", Value: bson.Binary{Subtype: 5, Data: v.Data}},
				}
			}
			in := marshal(t, doc(value(t, from)))
			before := bytes.Clone(in)
			fields := make(Tally)
			got, n, err := c.Rewrite(in, fields)
			if err != nil || n != 3 || !maps.Equal(fields, Tally{"a": 1, "deep[].b[]": 2}) {
				t.Fatalf("%s to %s: %d values, %v, %v", from, to, n, fields, err)
			}
			for _, path := range []string{"a", "deep.0.b.0", "deep.0.b.2"} {
				if subtype, octets, ok := at(got, path); !ok || subtype != stored[to].subtype || hex.EncodeToString(octets[:]) != stored[to].octets {
					t.Errorf("%s to %s, %s: %d %x", from, to, path, subtype, octets)
				}
			}
			// Apart from these three, nothing changed.
			for _, key := range []string{"_id", "other", "short", "text", "md5"} {
				if !got.Lookup(key).Equal(in.Lookup(key)) {
					t.Errorf("%s to %s: %s changed", from, to, key)
				}
			}
			if !bytes.Equal(in, before) {
				t.Fatal("the input was changed")
			}

			p, err := c.Plan(in)
			if err != nil || len(p.Skipped)+len(p.InID) > 0 {
				t.Fatalf("%+v, %v", p, err)
			}
			var paths []string
			for _, ch := range p.Changes {
				paths = append(paths, ch.Path)
				if hex.EncodeToString(ch.Old[:]) != stored[from].octets || hex.EncodeToString(ch.New[:]) != stored[to].octets {
					t.Errorf("%s to %s: %x becomes %x", from, to, ch.Old, ch.New)
				}
			}
			if s := strings.Join(paths, " "); s != "a deep.0.b.0 deep.0.b.2" {
				t.Errorf("%s to %s: changes %s", from, to, s)
			}
		}
	}
}

func TestPlanSkips(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	v := value(t, "javaLegacy")
	p, err := c.Plan(marshal(t, bson.D{
		{Key: "_id", Value: bson.D{{Key: "u", Value: v}}}, {Key: "a.b", Value: v}, {Key: "twice", Value: v}, {Key: "twice", Value: 1},
		{Key: "", Value: v}, {Key: "ok", Value: v}, {Key: "ref", Value: bson.D{{Key: "$ref", Value: "x"}, {Key: "$id", Value: v}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.InID) != 1 || len(p.Skipped) != 3 || len(p.Changes) != 2 || p.Changes[0].Path != "ok" || p.Changes[1].Path != "ref.$id" {
		t.Errorf("%+v", p)
	}
	if _, err := c.Plan([]byte("no document")); err == nil {
		t.Error("garbage is planned")
	}
	// A value that is the same in both orders needs no change where the subtype stays.
	p, err = conversion(t, "javaLegacy", "csharpLegacy").Plan(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "nil", Value: bson.Binary{Subtype: 3, Data: make([]byte, 16)}}}))
	if err != nil || len(p.Changes) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNewConversionRefuses(t *testing.T) {
	for _, tt := range [][3]string{
		{"standard", "standard", ""}, {"javaLegacy", "generic", ""}, {"unspecified", "standard", ""}, {"", "standard", ""},
		{"java", "standard", ""}, {"javaLegacy", "", ""}, {"JAVALEGACY", "javaLegacy", ""}, {"javaLegacy", "standard", "a..b"},
	} {
		var fields []string
		if tt[2] != "" {
			fields = []string{tt[2]}
		}
		if c, err := NewConversion(tt[0], tt[1], fields); err == nil {
			t.Errorf("%q: got %+v", tt, c)
		}
	}
}

// The update as the server reads it.
func TestModel(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	doc := marshal(t, bson.D{{Key: "_id", Value: "x"}, {Key: "a", Value: bson.A{value(t, "javaLegacy")}}})
	p, err := c.Plan(doc)
	if err != nil {
		t.Fatal(err)
	}
	m := p.model(3, 4)
	wantFilter := marshal(t, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: "x"}}}, {Key: "a.0", Value: bson.D{
		{Key: "$eq", Value: value(t, "javaLegacy")}, {Key: "$not", Value: bson.D{{Key: "$type", Value: "array"}}}}}})
	wantUpdate := marshal(t, bson.D{{Key: "$set", Value: bson.D{{Key: "a.0", Value: value(t, "standard")}}}})
	if !bytes.Equal(m.Filter.(bson.Raw), wantFilter) {
		t.Errorf("filter %v, want %v", m.Filter, wantFilter)
	}
	if !bytes.Equal(m.Update.(bson.Raw), wantUpdate) {
		t.Errorf("update %v, want %v", m.Update, wantUpdate)
	}
}

func identity() Identity {
	return Identity{Database: "d", Collection: "c", From: "javaLegacy", To: "standard"}
}

func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	s, err := OpenState(path, identity())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenState(path, identity()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	id := marshal(t, bson.D{{Key: "v", Value: bson.Binary{Subtype: 3, Data: []byte{0xff, 0}}}}).Lookup("v")
	s.Position, s.UndoOffset, s.Changed, s.UndoID = newPosition(id), 1<<40, 7, "abc"
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenState(path, identity())
	if err != nil {
		t.Fatal(err)
	}
	if !again.Position.raw().Equal(id) || again.UndoOffset != 1<<40 || again.Changed != 7 || again.Done {
		t.Errorf("%+v", again.State)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	other := identity()
	other.Part = "1/2"
	if _, err := OpenState(path, other); err == nil {
		t.Error("a state of another conversion is taken")
	}
	for _, bad := range []string{"", "{", "null", "[]", `{"bsonids":"state 0"}`, `{"bsonids":"state 1","unknown":1}`,
		`{"bsonids":"state 1","position":{"type":7,"value":"AAA="}}`, `{"bsonids":"state 1","undoOffset":-1}`, `{"bsonids":"state 1"}{}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := OpenState(path, identity()); err == nil {
			t.Errorf("%q is read as %+v", bad, s.State)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 { // the file and its lock
		t.Errorf("%v left behind, %v", entries, err)
	}
}

func FuzzParseState(f *testing.F) {
	s := State{Format: stateFormat, Identity: identity(), Position: &Position{7, make([]byte, 12)}, UndoID: "x", UndoOffset: 5}
	b, err := s.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"bsonids":"state 1"}`))
	f.Add([]byte(`{"bsonids":"state 1","position":{"type":2,"value":"AgAAAGEA"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseState(b)
		if err != nil {
			return
		}
		after(s.Position.raw(), false) // any position that is taken can be read on from
		out, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseState(out)
		if err != nil || !again.Identity.equal(s.Identity) || again.UndoOffset != s.UndoOffset || !again.Position.raw().Equal(s.Position.raw()) {
			t.Errorf("%s reads as %+v, %v", out, again, err)
		}
	})
}

func plans(t testing.TB, c Conversion, ids ...any) []Plan {
	t.Helper()
	var out []Plan
	for _, id := range ids {
		p, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: bson.D{{Key: "ü\"", Value: value(t, c.From.Name)}}}}))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func readAll(t testing.TB, path string) []Entry {
	t.Helper()
	u, err := ReadUndoLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var out []Entry
	for {
		e, err := u.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

func TestUndoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy", "standard")
	l, err := OpenUndoLog(path, identity())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenUndoLog(path, identity()); err == nil {
		t.Error("opened twice")
	}
	if _, err := ReadUndoLogAlone(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("to be undone while it is written: %v", err)
	}
	if u, err := ReadUndoLog(path); err != nil {
		t.Errorf("not to be read while it is written: %v", err)
	} else if err := u.Close(); err != nil {
		t.Error(err)
	}
	dec, _ := bson.ParseDecimal128("1E+3")
	ids := []any{bson.ObjectID{1}, "text\n", int32(1), int64(1) << 60, 1.5, math.Inf(1), bson.Binary{Subtype: 3, Data: []byte{1}},
		bson.D{{Key: "x", Value: bson.A{1, "y"}}}, true, nil, dec, bson.DateTime(-1), bson.Timestamp{T: 1, I: 2}, bson.MinKey{}, bson.MaxKey{}}
	want := plans(t, c, ids...)
	no := func(Plan) bool { return false }
	start, err := l.Append(want, c, no)
	if err != nil || start == 0 {
		t.Fatalf("%d, %v", start, err)
	}
	for _, p := range want {
		if !keepsID(p.ID) {
			t.Errorf("%v doesn't survive", p.ID)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	u, err := ReadUndoLogAlone(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenUndoLog(path, identity()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("to be written while it is undone: %v", err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := ReadUndoLogAlone(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log that is missing: %v", err)
	}
	if left, err := filepath.Glob(missing + "*"); err != nil || left != nil {
		t.Errorf("a log that is missing leaves %q, %v", left, err)
	}
	got := readAll(t, path)
	for i, p := range want {
		e := got[i]
		if !e.ID.Equal(p.ID) || len(e.Changes) != 1 || e.Changes[0].Path != `a.ü"` || e.Changes[0].Old != p.Changes[0].Old || e.Changes[0].New != p.Changes[0].New || e.from != 3 || e.to != 4 || e.Again {
			t.Errorf("%v reads as %+v", p, e)
		}
	}

	// A process that was killed while it wrote leaves part of a line, which goes when the log is opened again.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 10, 50} {
		if err := os.WriteFile(path, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, path); len(got) != len(want)-1 {
			t.Errorf("%d octets cut off: %d entries", cut, len(got))
		}
		l, err := OpenUndoLog(path, identity())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(want[len(want)-1:], c, func(Plan) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, path); len(got) != len(want) || !got[len(got)-1].Again {
			t.Errorf("%d octets cut off and appended: %d entries", cut, len(got))
		}
	}
	other := identity()
	other.Collection = "x"
	if _, err := OpenUndoLog(path, other); err == nil {
		t.Error("a log of another conversion is taken")
	}
	if keepsID(marshal(t, bson.D{{Key: "v", Value: string([]byte{0xff})}}).Lookup("v")) {
		t.Error("text that is no UTF-8 is said to survive")
	}
}

// Lines that say "again" make the earlier ones about their document void, and no others.
func TestVoid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy", "standard")
	l, err := OpenUndoLog(path, identity())
	if err != nil {
		t.Fatal(err)
	}
	p := plans(t, c, "a", "b", "c")
	for _, step := range []struct {
		plan  int
		again bool
	}{{0, false}, {1, false}, {0, true}, {2, false}, {0, true}, {1, false}} {
		if _, err := l.Append(p[step.plan:step.plan+1], c, func(Plan) bool { return step.again }); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 2, 100} {
		u, err := ReadUndoLog(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = entries(u, size, func(b []Entry) error {
			if len(b) > size {
				t.Errorf("%d entries at a time, want %d", len(b), size)
			}
			for _, e := range b {
				got = append(got, e.ID.StringValue())
			}
			return nil
		})
		if s := strings.Join(got, ""); err != nil || s != "bcab" {
			t.Errorf("%s, %v", s, err)
		}
		u.Close()
	}
}

func FuzzParseEntry(f *testing.F) {
	c := conversion(f, "javaLegacy", "standard")
	for i, p := range plans(f, c, "a", 1, bson.ObjectID{1}) {
		line, err := appendEntry(nil, p, 3, 4, i == 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"_id":1}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := ParseEntry(line)
		if err != nil {
			return
		}
		out, err := appendEntry(nil, Plan{ID: e.ID, Changes: e.Changes}, e.from, e.to, e.Again)
		if err != nil {
			return // an _id that extended JSON cannot write; keepsID keeps such out of the log
		}
		if bytes.IndexByte(out, '\n') >= 0 {
			t.Errorf("%q is more than one line", out)
		}
		again, err := ParseEntry(out)
		if err != nil || len(again.Changes) != len(e.Changes) {
			t.Errorf("%s reads as %+v, %v", out, again, err)
		}
	})
}

// Whatever the sequence in which batches end, the checkpoint's position is behind done batches only, and its offset before
// every entry of the others.
func TestTracker(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		tr := newTracker()
		n := 1 + r.IntN(12)
		done, logged := make([]bool, n), make([]int64, n)
		var size int64 = 100
		var open []int
		begun := 0
		check := func() {
			position, offset := tr.checkpoint(func() int64 { return size })
			upTo := -1
			if position.Type != 0 {
				upTo = int(position.Int32())
			}
			for i := range begun {
				if i <= upTo && !done[i] {
					t.Fatalf("position %d, but batch %d isn't done", upTo, i)
				}
				if i > upTo && logged[i] > 0 && logged[i] < offset {
					t.Fatalf("position %d and offset %d, but batch %d has entries from %d on", upTo, offset, i, logged[i])
				}
			}
		}
		for begun < n || len(open) > 0 {
			if begun < n && (len(open) == 0 || r.IntN(2) == 0) {
				tr.begin(begun, marshal(t, bson.D{{Key: "v", Value: int32(begun)}}).Lookup("v"))
				open = append(open, begun)
				begun++
			} else {
				k := r.IntN(len(open))
				b := open[k]
				if r.IntN(2) == 0 {
					if err := tr.logged(b, func() (int64, error) { size += 10; return size - 10, nil }); err != nil {
						t.Fatal(err)
					}
					if logged[b] == 0 {
						logged[b] = size - 10
					}
				} else {
					done[b] = true
					tr.done(b)
					open = append(open[:k], open[k+1:]...)
				}
			}
			check()
		}
		if position, offset := tr.checkpoint(func() int64 { return size }); int(position.Int32()) != n-1 || offset != size {
			t.Fatalf("at the end: %v, %d", position, offset)
		}
	}
	tr := newTracker()
	tr.hold(7)
	tr.begin(0, bson.RawValue{})
	tr.release(0)
	if _, offset := tr.checkpoint(func() int64 { return 100 }); offset != 7 {
		t.Errorf("held entries are let go at %d", offset)
	}
	tr.done(0)
	if _, offset := tr.checkpoint(func() int64 { return 100 }); offset != 100 {
		t.Errorf("entries are held for ever: %d", offset)
	}
}

// The parts cover every document once, are about equal, and stay the same.
func TestPart(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	ids := make([]bson.RawValue, 8000)
	for i := range ids {
		var id any = int64(i)
		switch i % 4 {
		case 1:
			id = bson.NewObjectID()
		case 2:
			id = fmt.Sprint("user-", i)
		case 3:
			id = bson.Binary{Subtype: 3, Data: binaryOf(r)}
		}
		ids[i] = marshal(t, bson.D{{Key: "v", Value: id}}).Lookup("v")
	}
	for _, n := range []int{1, 2, 3, 8} {
		count := make([]int, n)
		for _, id := range ids {
			in := 0
			for i := range n {
				p, err := ParsePart(fmt.Sprintf("%d/%d", i+1, n))
				if err != nil {
					t.Fatal(err)
				}
				if p.Has(id) {
					in++
					count[i]++
				}
			}
			if in != 1 {
				t.Fatalf("%v is in %d parts of %d", id, in, n)
			}
		}
		for i, c := range count {
			if mean := len(ids) / n; c < mean*85/100 || c > mean*115/100 {
				t.Errorf("part %d of %d has %d of %d documents", i+1, n, c, len(ids))
			}
		}
	}
	for _, bad := range []string{"0/2", "3/2", "1", "/", "a/b", "1/2/3", "-1/2", "1/0"} {
		if p, err := ParsePart(bad); err == nil {
			t.Errorf("%q is %v", bad, p)
		}
	}
}

func binaryOf(r *rand.Rand) []byte {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// A filter for what follows an _id names every type that sorts after its own, and no other.
func TestAfter(t *testing.T) {
	if f := after(bson.RawValue{}, false); len(f) != 0 {
		t.Errorf("at the beginning: %v", f)
	}
	types := func(v any, plain bool) string {
		f := after(marshal(t, bson.D{{Key: "v", Value: v}}).Lookup("v"), plain)
		if f[0].Key != "$or" {
			return ""
		}
		return fmt.Sprint(f[0].Value.(bson.A)[1].(bson.D)[0].Value.(bson.D)[0].Value)
	}
	for _, tt := range []struct {
		id    any
		plain bool
		want  string
	}{
		{bson.NewObjectID(), true, "[bool date timestamp regex]"},
		{bson.NewObjectID(), false, "[bool date timestamp regex dbPointer javascript javascriptWithScope maxKey]"},
		{int64(1), true, "[string object binData objectId bool date timestamp regex]"},
		{"x", true, "[object binData objectId bool date timestamp regex]"},
		{bson.MaxKey{}, false, ""},
	} {
		if got := types(tt.id, tt.plain); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.id, got, tt.want)
		}
	}
	f := after(marshal(t, bson.D{{Key: "v", Value: math.NaN()}}).Lookup("v"), false)
	if got := f[0].Value.(bson.A)[0].(bson.D)[0].Value.(bson.D)[0]; got.Key != "$gte" || got.Value != math.Inf(-1) {
		t.Errorf("after NaN: %v", got)
	}
}

// SIGKILL cannot be tested at every instruction, but what it can leave behind can: an undo log that has more than the
// server was asked for, or as much.
func TestReconsider(t *testing.T) {
	c := conversion(t, "javaLegacy", "csharpLegacy")
	doc := func(v bson.Binary) bson.Raw {
		return marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: v}})
	}
	before, err := c.Plan(doc(value(t, "javaLegacy")))
	if err != nil {
		t.Fatal(err)
	}
	entry := Entry{ID: before.ID, Changes: before.Changes}
	for name, tt := range map[string]struct {
		now                    bson.Binary
		changes, skipped, kept int
	}{
		"not asked for":         {value(t, "javaLegacy"), 1, 0, 0},
		"done":                  {value(t, "csharpLegacy"), 0, 0, 1},
		"changed by another":    {value(t, "pythonLegacy"), 0, 1, 0},
		"of another subtype":    {value(t, "standard"), 0, 0, 0},
		"not of sixteen octets": {bson.Binary{Subtype: 3, Data: []byte{1}}, 0, 0, 0},
	} {
		r := &runner{Options: Options{Conversion: c}, inFlight: map[string]Entry{key(before.ID): entry}}
		p, err := c.Plan(doc(tt.now))
		if err != nil {
			t.Fatal(err)
		}
		r.reconsider(&p, doc(tt.now))
		if len(p.Changes) != tt.changes || len(p.Skipped) != tt.skipped || len(p.kept) != tt.kept || !p.again || len(r.inFlight) != 0 {
			t.Errorf("%s: %+v, %d in flight", name, p, len(r.inFlight))
		}
	}
}

// However many names there are, a bounded number is kept and nothing goes uncounted.
func TestTally(t *testing.T) {
	c := make(Tally)
	for i := range 3 * maxNames {
		c.add(fmt.Sprint("name", i), 1)
		c.add("name0", 2)
	}
	if len(c) != maxNames+1 || c["name0"] != 1+2*3*maxNames || c["name1"] != 1 || c[Others] != 2*maxNames {
		t.Errorf("%d names, %d others", len(c), c[Others])
	}
}

// What a skipped document is called is JSON whatever the names of its fields are.
func TestSkipJSON(t *testing.T) {
	id := marshal(t, bson.D{{Key: "_id", Value: "a\x01\"<é"}}).Lookup("_id")
	const reason = "the field \x01\x7f\a\U000e0001\"\\ is odd"
	b, err := json.Marshal(Skip{id, reason})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ID     string `json:"_id"`
		Reason string
	}
	if err := json.Unmarshal(b, &got); err != nil || got.Reason != reason || got.ID != "a\x01\"<é" {
		t.Errorf("%s: %+v, %v", b, got, err)
	}
}

// A file system that syncs no directories is no reason to fail.
func TestSyncDir(t *testing.T) {
	if err := syncDir(t.TempDir()); err != nil {
		t.Error(err)
	}
	if runtime.GOOS == "linux" { // whose /proc answers EINVAL, as shares and user space file systems do
		if err := syncDir("/proc"); err != nil {
			t.Error(err)
		}
	}
	if err := syncDir(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("synced what isn't there")
	}
}

package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// messages keeps what is told, each with what it is about.
type messages struct {
	about string
	told  *[]string
}

func (m *messages) Warn(format string, args ...any) {
	*m.told = append(*m.told, m.about+": "+fmt.Sprintf(format, args...))
}
func (m *messages) Progress(int64, string, string) terminal.Progress { return nil }
func (m *messages) About(namespace string)                           { m.about = namespace }
func (m *messages) Child(namespace string) Messages                  { return &messages{namespace, m.told} }

// started returns a session with a server whose database has a collection of one document.
func started(t *testing.T) (*memory.Server, *mongo.Database, *Session, *[]string) {
	t.Helper()
	s := memory.Start(t)
	db := s.Client.Database("d")
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: int32(1)}})
	if err != nil {
		t.Fatal(err)
	}
	s.Put(db.Collection("a"), doc)
	told := new([]string)
	return s, db, &Session{Client: s.Client, URI: "mongodb://user:secret@host/", Version: "v1", Messages: &messages{"d", told},
		Recording: Recording{Migration: "m", Directory: "/dir", Lock: "lock", BatchTimeout: time.Minute}}, told
}

// A user who lacks privileges for a verb that writes is told before anything is changed, and warned of what the later ones need. A
// rehearsal warns, and tells how the verb would end. Nobody lacks anything of a server without access control.
func TestAllowed(t *testing.T) {
	work := privilege.Work{Database: "d", Copies: []privilege.Copy{{Old: "a", New: "b", Kept: "c"}}}
	const apply, release = "the user lacks privileges for bsonids apply --write: ", "the user lacks privileges for bsonids release --write: "
	for name, tt := range map[string]struct {
		actions  []string // on the database; nobody is authenticated if it is nil
		open     bool     // there is no access control
		lacks    bool     // something for the verb
		warnings []string // in a rehearsal; the verb that writes gives those of later ones
	}{
		"nobody":     {nil, false, false, nil},
		"everything": {[]string{"anyAction"}, false, false, nil},
		"reads":      {[]string{"find", "listCollections"}, false, true, []string{release, apply}},
		"applies":    {[]string{"find", "listCollections", "listIndexes", "insert", "update", "remove", "createIndex"}, false, false, []string{release}},
		"releases":   {[]string{"find", "listCollections", "collMod", "insert", "update"}, false, true, []string{apply}},
		"open":       {[]string{"find", "listCollections"}, true, false, nil},
	} {
		for _, write := range []bool{false, true} {
			m, _, s, told := started(t)
			if tt.actions != nil {
				m.AuthInfo = bson.D{{Key: "authenticatedUsers", Value: bson.A{bson.D{{Key: "user", Value: "u"}}}}, {Key: "authenticatedUserPrivileges", Value: bson.A{
					bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: "d"}, {Key: "collection", Value: ""}}}, {Key: "actions", Value: tt.actions}}}}}
			}
			m.Before = func(_ string, c bson.Raw) (f memory.Fault) {
				if strings.Contains(c.String(), "bsonids.absent") && !tt.open {
					f.Code = 13
				}
				return f
			}
			denied, err := s.Allowed(t.Context(), work, write, privilege.Apply, privilege.Release)
			var of *failure.Error
			for _, e := range []error{denied, err} {
				if want := tt.lacks && (e == err) == write; (e != nil) != want || want && (!errors.As(e, &of) || of.Kind != failure.Denied || !strings.HasPrefix(of.Text, apply)) {
					t.Errorf("%s, write %v: %v, %v", name, write, denied, err)
				}
			}
			want := 0
			for _, w := range tt.warnings {
				if write && w == apply {
					continue
				}
				if want >= len(*told) || !strings.Contains((*told)[want], w) {
					t.Errorf("%s, write %v: %q is not in %q", name, write, w, *told)
					break
				}
				want++
			}
			if len(*told) != want {
				t.Errorf("%s, write %v: %q", name, write, *told)
			}
		}
	}
	_, _, s, _ := started(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Allowed(ctx, work, true, privilege.Apply); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The limit of a batch is the one that was given, or that of a server which ends what exceeds it, or one that is long enough for the
// others. A server is asked once.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		given    time.Duration
		enforced bool
		want     time.Duration
	}{
		{0, true, bulk.Enforced}, {0, false, bulk.Timeout}, {time.Second, true, time.Second}, {time.Second, false, time.Second},
	} {
		m, db, s, _ := started(t)
		asked := 0
		m.Before = func(name string, c bson.Raw) (f memory.Fault) {
			if limit, ok := c.Lookup("maxTimeMS").AsInt64OK(); name == "update" && ok && limit == 1 {
				if asked++; tt.enforced {
					f.Code = 50 // MaxTimeMSExpired
				} else {
					f.Code = 168 // of an operator that the server does not know
				}
			}
			return f
		}
		s.BatchTimeout = tt.given
		for range 2 {
			if err := s.Limit(t.Context(), db, "a"); err != nil || s.BatchTimeout != tt.want || s.Halves != tt.enforced {
				t.Errorf("%+v: %v, %v, %v", tt, err, s.BatchTimeout, s.Halves)
			}
		}
		if tt.enforced && asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	}
	m, db, s, _ := started(t)
	m.Before = func(name string, _ bson.Raw) (f memory.Fault) {
		if name == "find" {
			f.Code = 13
		}
		return f
	}
	if err := s.Limit(t.Context(), db, "a"); !failure.IsDenied(err) {
		t.Error(err)
	}
}

// FerretDB 1 gets at most 60 updates at once, of all collections together, and other servers what was asked for.
func TestGentle(t *testing.T) {
	for _, tt := range []struct {
		version                        string
		atOnce, batch, workers         int
		wantBatch, wantWorkers, atMost int
	}{
		{"", 4, 1000, 8, 1000, 8, 0},
		{"v2.1.0", 4, 1000, 8, 1000, 8, 0},
		{"v1.24.0", 1, 1000, 8, 60, 1, 60},
		{"v1.24.0", 4, 1000, 8, 15, 1, 60},
		{"v1.24.0", 1, 10, 8, 10, 6, 60},
		{"v1.24.0", 100, 10, 8, 1, 1, 100},
	} {
		m, _, s, _ := started(t)
		m.FerretDB = tt.version
		batch, workers := s.Gentle(t.Context(), tt.atOnce, tt.batch, tt.workers)
		if batch != tt.wantBatch || workers != tt.wantWorkers || tt.atMost > 0 && tt.atOnce*batch*workers > tt.atMost {
			t.Errorf("%+v: %d, %d", tt, batch, workers)
		}
	}
}

// A claim is a run in the record, with what the session knows of it, until its end. While it lasts, another one is refused, and may take
// over if the session says so.
func TestClaim(t *testing.T) {
	_, db, s, told := started(t)
	request := record.Request{Run: record.Run{Kind: record.Convert, Task: kinds.Task{Collection: "a"}, Conversion: "m/a"}}
	c, err := s.Claim(t.Context(), db, request)
	if err != nil {
		t.Fatal(err)
	}
	runs := func() []*record.Run {
		t.Helper()
		all, err := record.Runs(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if r := runs()[0]; r.Migration != "m" || r.Directory != "/dir" || r.Lock != "lock" || r.BatchTimeout != time.Minute || r.By.Version != "v1" || r.By.Token != c.Run() || r.Ended != nil {
		t.Errorf("%+v", r)
	}
	other := *s
	other.Lock, other.TakeOver = "other", true
	taken, err := other.Claim(t.Context(), db, request)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckNow(t.Context()); !errors.Is(err, record.ErrTakenOver) {
		t.Error(err)
	}
	if err := taken.End(failure.ErrIncomplete); err != nil {
		t.Fatal(err)
	}
	if err := c.End(errors.New("an error")); err != nil {
		t.Fatal(err)
	}
	if all := runs(); all[0].Outcome != record.Stopped || all[0].Reason != "an error" || all[1].Outcome != record.Done || all[0].Ended == nil || all[1].Ended == nil {
		t.Errorf("%+v, %+v", all[0], all[1])
	}
	if len(*told) > 0 {
		t.Error(*told)
	}
}

// A user who may not write the record learns what it is for, and what is needed.
func TestClaimDenied(t *testing.T) {
	m, db, s, _ := started(t)
	m.Before = func(name string, c bson.Raw) (f memory.Fault) {
		if of, _ := c.Lookup(name).StringValueOK(); of == record.Name {
			f.Code = 13
		}
		return f
	}
	_, err := s.Claim(t.Context(), db, record.Request{Run: record.Run{Kind: record.Convert, Task: kinds.Task{Collection: "a"}}})
	var of *failure.Error
	if !errors.As(err, &of) || of.Kind != failure.Denied || !strings.Contains(of.Text, "conversions are recorded in "+record.Name) || !strings.Contains(of.Text, privilege.Needs(privilege.Apply)) || !failure.Means(err, failure.Unauthorized) {
		t.Error(err)
	}
	if other := errors.New("other"); OfRecord(other) != other || OfRecord(nil) != nil {
		t.Error("another error is one of the record")
	}
}

// A child tells what it finds of its own collection, and shares everything else. No message shows the credentials.
func TestSession(t *testing.T) {
	_, _, s, told := started(t)
	child := s.Child("d.a")
	child.Warn("one")
	s.Warn("two")
	child.About("d.b")
	s.Warn("three")
	if got := strings.Join(*told, ", "); got != "d.a: one, d: two, d: three" || child.Client != s.Client || child.Migration != s.Migration {
		t.Error(got)
	}
	lost := mongo.CommandError{Code: 91} // ShutdownInProgress
	s.Patience = patience.New(0, nil)
	if err := s.Do(t.Context(), func() error { return lost }); !errors.As(err, &mongo.CommandError{}) || s.Patience.Lost().IsZero() || child.Patience != nil {
		t.Error(err)
	}
	if e := s.Explain(errors.New("mongodb://user:secret@host/ is lost")); strings.Contains(e.Text, "secret") {
		t.Error(e.Text)
	}
}

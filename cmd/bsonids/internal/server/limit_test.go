package server

import (
	"context"
	"net"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A server that ends a command at its limit is heard, also if its answer comes after the deadline, which is when
// the limit is over.
func TestAnswerAtLimit(t *testing.T) {
	s := memory.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s.Before = func(name string, command bson.Raw) memory.Fault {
		if name != "insert" {
			return memory.Fault{}
		}
		if limit, ok := command.Lookup("maxTimeMS").AsInt64OK(); !ok || limit > 50 {
			t.Errorf("the server has no limit: %s", command)
		}
		<-ctx.Done()
		return memory.Fault{Code: 50} // MaxTimeMSExpired
	}
	client, err := Connect(t.Context(), s.URI, Write)
	if err != nil {
		t.Fatal(err)
	}
	defer Disconnect(client)
	if _, err = client.Database("d").Collection("c").InsertOne(ctx, bson.D{}); !failure.Means(err, failure.Expired) {
		t.Error(err)
	}
}

// A time limit of the connection string is one of the connections: no command gets a limit from the driver, which
// would be there twice if the command has one.
func TestConnectionTimeout(t *testing.T) {
	s := memory.Start(t)
	s.Put(s.Client.Database("d").Collection("c"), bson.Raw("\x0e\x00\x00\x00\x10_id\x00\x01\x00\x00\x00\x00"))
	var probes int
	s.Before = func(name string, command bson.Raw) memory.Fault {
		limit, ok := command.Lookup("maxTimeMS").AsInt64OK()
		if name == "update" {
			probes++
			return memory.Fault{Code: 50}
		} else if ok && name != "endSessions" { // the program gives this one no limit of its own
			t.Errorf("%s has the limit %d", name, limit)
		}
		return memory.Fault{}
	}
	client, err := Connect(t.Context(), s.URI+"&timeoutMS=60000", Write)
	if err != nil {
		t.Fatal(err)
	}
	defer Disconnect(client)
	if enforced, err := EnforcesTime(t.Context(), client.Database("d").Collection("c")); !enforced || err != nil || probes != 1 {
		t.Errorf("%v, %v, %d probes", enforced, err, probes)
	}
}

// deadlines is a connection that notes its deadlines.
type deadlines struct {
	net.Conn
	got []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.got = append(d.got, t)
	return nil
}

func TestPatientConn(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	for _, tt := range []struct {
		limit    time.Duration
		set, got time.Time
	}{
		{0, time.Time{}, time.Time{}},
		{time.Minute, time.Time{}, now.Add(time.Minute)},
		{time.Minute, now.Add(time.Hour), now.Add(time.Hour + grace)},
		{0, now.Add(time.Second), now.Add(time.Second + grace)},
		{time.Minute, now, now}, // ends a read
		{0, now.Add(-time.Second), now.Add(-time.Second)},
	} {
		d := &deadlines{}
		if err := (&patientConn{Conn: d, limit: tt.limit, now: clock}).SetReadDeadline(tt.set); err != nil || len(d.got) != 1 || !d.got[0].Equal(tt.got) {
			t.Errorf("limit %s, deadline %s: got %v, want %s", tt.limit, tt.set, d.got, tt.got)
		}
	}
}

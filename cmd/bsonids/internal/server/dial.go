package server

import (
	"context"
	"net"
	"time"
)

// grace is for how long the answer of a server is waited for that ends a command at its limit.
const grace = 2 * time.Second

// dialer makes connections that wait for an answer a little longer than the deadline of the context. The driver gives
// the server the time until then (maxTimeMS) and would stop reading at the same moment: the answer of a server that uses all of
// its time would come too late, and the connection would count as lost.
type dialer struct {
	net.Dialer
	limit time.Duration // of a read for which the driver sets no deadline; none if 0
}

// DialContext implements options.Dialer.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.Dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &patientConn{Conn: c, limit: d.limit, now: time.Now}, nil
}

type patientConn struct {
	net.Conn
	limit time.Duration
	now   func() time.Time
}

// SetReadDeadline sets a deadline that is grace later. One that is over ends a read, and stays as it is.
func (c *patientConn) SetReadDeadline(t time.Time) error {
	switch now := c.now(); {
	case t.IsZero() && c.limit > 0:
		t = now.Add(c.limit)
	case t.After(now):
		t = t.Add(grace)
	}
	return c.Conn.SetReadDeadline(t)
}

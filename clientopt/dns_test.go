package clientopt

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// The driver uses net.DefaultResolver, so the tests that replace what it dials must not run in parallel.

var errNoDNS = errors.New("no DNS in this test")

// refuseDNS makes every DNS look-up fail for the rest of the test. It returns the number of
// look-ups.
func refuseDNS(tb testing.TB) *atomic.Int64 {
	tb.Helper()
	return setResolver(tb, func() (net.Conn, error) { return nil, errNoDNS })
}

// serveDNS answers every look-up of SRV records with one record, which points at target:27017, and
// every look-up of TXT records with txt, for the rest of the test. It returns the number of
// look-ups.
func serveDNS(tb testing.TB, target, txt string) *atomic.Int64 {
	tb.Helper()
	return setResolver(tb, func() (net.Conn, error) {
		near, far := net.Pipe() // not a packet connection, so each message has a length prefix
		go answerDNS(far, target, txt)
		return near, nil
	})
}

// dial is called for each look-up. It is nil outside the tests that replace it.
var dial atomic.Pointer[func() (net.Conn, error)]

// A look-up may go on behind the test that began it, so that net.DefaultResolver is set once.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if f := dial.Load(); f != nil {
			return (*f)()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

func setResolver(tb testing.TB, f func() (net.Conn, error)) *atomic.Int64 {
	lookups := new(atomic.Int64)
	counted := func() (net.Conn, error) {
		lookups.Add(1)
		return f()
	}
	dial.Store(&counted)
	tb.Cleanup(func() { dial.Store(nil) })
	return lookups
}

// answerDNS reads one query of RFC 1035, section 4, and answers it.
func answerDNS(conn net.Conn, target, txt string) {
	defer conn.Close()
	be := binary.BigEndian
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	query := make([]byte, be.Uint16(size[:]))
	if _, err := io.ReadFull(conn, query); err != nil || len(query) < 12 {
		return
	}
	end := 12
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end += 5 // the root label, type and class
	kind := be.Uint16(query[end-4:])

	var data []byte
	switch {
	case kind == 33: // SRV, RFC 2782: priority, weight, port, target
		data = be.AppendUint16([]byte{0, 0, 0, 0}, 27017)
		for label := range strings.SplitSeq(target, ".") {
			data = append(append(data, byte(len(label))), label...)
		}
		data = append(data, 0)
	case kind == 16 && txt != "":
		data = append([]byte{byte(len(txt))}, txt...)
	}
	answer := append([]byte(nil), query[:end]...)
	be.PutUint16(answer[2:], 0x8180) // a response, recursion desired and available
	clear(answer[6:12])
	if data != nil {
		be.PutUint16(answer[6:], 1)
		answer = be.AppendUint16(answer, 0xC00C) // the name in the question
		answer = be.AppendUint16(answer, kind)
		answer = be.AppendUint16(answer, 1) // IN
		answer = be.AppendUint32(answer, 60)
		answer = be.AppendUint16(answer, uint16(len(data)))
		answer = append(answer, data...)
	}
	_, _ = conn.Write(append(be.AppendUint16(nil, uint16(len(answer))), answer...))
}

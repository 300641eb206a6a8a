// Package front stands before a server of tests and refuses what MongoDB refuses in a command before it carries it
// out: a field that is there twice, and one that the command does not have. Other servers take the first of two, and many
// that they do not know.
package front

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/bsonids/bsonids/internal/strict"
)

// Front passes messages on to a server, and refuses some. It is safe for concurrent use.
type Front struct {
	listener net.Listener
	server   string
	serving  sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]bool
	ended bool
}

// Listen returns a front that listens on addr, as host:port. Its clients wait until Serve is called.
func Listen(addr string) (*Front, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("front: %w", err)
	}
	return &Front{listener: l, open: make(map[net.Conn]bool)}, nil
}

// Addr returns the address that the front listens on, as host:port.
func (f *Front) Addr() string { return f.listener.Addr().String() }

// Serve begins to serve the clients of the server at addr.
func (f *Front) Serve(addr string) {
	f.server = addr
	f.serving.Go(func() {
		for {
			client, err := f.listener.Accept()
			if err != nil {
				return
			}
			f.serving.Go(func() { f.serve(client) })
		}
	})
}

// add notes a connection, and reports false if the front was closed.
func (f *Front) add(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return false
	}
	f.open[c] = true
	return true
}

func (f *Front) remove(c net.Conn) {
	f.mu.Lock()
	delete(f.open, c)
	f.mu.Unlock()
	_ = c.Close()
}

func (f *Front) serve(client net.Conn) {
	defer f.remove(client)
	if !f.add(client) {
		return
	}
	server, err := net.Dial("tcp", f.server)
	if err != nil {
		return
	}
	defer f.remove(server)
	if !f.add(server) {
		return
	}
	f.serving.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	var message []byte
	for {
		// A client has no other answer to wait for when it sends a message that is refused.
		if message, err = readMessage(client, message); err != nil {
			return
		}
		to, b := server, message
		if answer := strict.Message(message); answer != nil {
			if to, b = client, answer; !answered(message) {
				continue
			}
		}
		if _, err := to.Write(b); err != nil {
			return
		}
	}
}

// answered reports whether a client waits for an answer to a message.
func answered(message []byte) bool {
	flags, _, ok := wiremessage.ReadMsgFlags(message[16:])
	return ok && flags&wiremessage.MoreToCome == 0
}

// readMessage reads a message into a buffer, which it returns, or a larger one.
func readMessage(r io.Reader, b []byte) ([]byte, error) {
	const header, largest = 16, 64 << 20
	b = append(b[:0], make([]byte, header)...)
	if _, err := io.ReadFull(r, b); err != nil {
		return b, err
	}
	n, _, _ := bsoncore.ReadLength(b)
	if n < header || n > largest {
		return b, fmt.Errorf("front: a message of %d bytes", n)
	}
	b = append(b, make([]byte, n-header)...)
	_, err := io.ReadFull(r, b[header:])
	return b, err
}

// Close closes all connections, and waits until nothing is served any more.
func (f *Front) Close() error {
	err := f.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	f.mu.Lock()
	f.ended = true
	for c := range f.open {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.serving.Wait()
	return err
}

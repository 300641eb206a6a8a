// Package embedded runs a FerretDB server inside the process. The server uses the MongoDB wire
// protocol over TCP on loopback and keeps its data in SQLite files. It needs no container and no
// installed database.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/FerretDB/FerretDB/ferretdb"

	"github.com/bsonids/bsonids/integration/front"
)

// Server is a running FerretDB. It is safe for concurrent use.
type Server struct {
	addr   string
	front  *front.Front // nil without WithFront
	cancel context.CancelFunc
	done   chan error // closed when the server has ended

	closing  sync.Once
	closeErr error
	tempDir  string // removed by Close; empty if the caller gave a directory
}

// Option changes how Start starts a server.
type Option func(*config)

type config struct {
	dir   string
	addr  string
	front bool
}

// WithDir keeps the databases in dir. The directory must exist, and Close does not remove it. The
// default is a temporary directory that Close removes.
func WithDir(dir string) Option { return func(c *config) { c.dir = dir } }

// WithAddr sets the address to listen on, as host:port. The default is a free port of 127.0.0.1.
func WithAddr(addr string) Option { return func(c *config) { c.addr = addr } }

// WithFront makes the server refuse commands with a field that is there twice, or that the command does not have, as
// MongoDB does; see the package front.
func WithFront() Option { return func(c *config) { c.front = true } }

// Start starts a server and returns when it accepts connections. The server does not log and does
// not send telemetry. Start returns an error if the server cannot listen or cannot write its files.
func Start(opts ...Option) (*Server, error) {
	cfg := config{addr: "127.0.0.1:0"}
	for _, opt := range opts {
		opt(&cfg)
	}

	s := &Server{done: make(chan error, 1)}
	// A temporary directory is removed with the server, so the server need not wait for the disk.
	pragma := ""
	if cfg.dir == "" {
		dir, err := os.MkdirTemp("", "bsonids-server-")
		if err != nil {
			return nil, fmt.Errorf("embedded: making the data directory: %w", err)
		}
		cfg.dir, s.tempDir = dir, dir
		pragma = "?_pragma=synchronous(off)"
	}

	err := s.start(cfg, pragma)
	if err != nil {
		if s.front != nil {
			err = errors.Join(err, s.front.Close())
		}
		if s.tempDir != "" {
			err = errors.Join(err, os.RemoveAll(s.tempDir))
		}
		return nil, err
	}
	return s, nil
}

func (s *Server) start(cfg config, pragma string) error {
	if cfg.front {
		var err error
		if s.front, err = front.Listen(cfg.addr); err != nil {
			return fmt.Errorf("embedded: %w", err)
		}
		cfg.addr = "127.0.0.1:0"
	}
	// The errors of FerretDB for an invalid address or directory are chains of its function names.
	// If it cannot listen, it leaves a backend open whose finalizer panics later.
	l, err := net.Listen("tcp", cfg.addr)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	if info, err := os.Stat(cfg.dir); err != nil {
		return fmt.Errorf("embedded: data directory: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("embedded: data directory %q is not a directory", cfg.dir)
	}
	dir, err := filepath.Abs(cfg.dir)
	if err != nil {
		return fmt.Errorf("embedded: data directory: %w", err)
	}

	db, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: cfg.addr},
		Logger:    slog.New(slog.DiscardHandler),
		Handler:   "sqlite",
		SQLiteURL: "file:" + filepath.ToSlash(dir) + "/" + pragma,
	})
	if err != nil {
		return fmt.Errorf("embedded: starting FerretDB on %s: %w", cfg.addr, err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		s.done <- db.Run(ctx)
		close(s.done)
	}()
	uri := db.MongoDBURI()
	s.addr = uri[len("mongodb://") : len(uri)-len("/")]
	if s.front != nil {
		s.front.Serve(s.addr)
		s.addr = s.front.Addr()
	}
	return nil
}

// Addr returns the address that the server listens on, as host:port.
func (s *Server) Addr() string { return s.addr }

// URI returns the connection string of the server. It has no database and no options.
func (s *Server) URI() string { return "mongodb://" + s.addr + "/" }

// Close stops the server and waits until it has ended. FerretDB waits three seconds for open
// connections, so disconnect the clients first. Later calls return the result of the first call.
func (s *Server) Close() error {
	s.closing.Do(func() {
		if s.front != nil {
			s.closeErr = s.front.Close()
		}
		s.cancel()
		if err := <-s.done; err != nil {
			s.closeErr = errors.Join(s.closeErr, fmt.Errorf("embedded: stopping FerretDB: %w", err))
		}
		if s.tempDir != "" {
			if err := os.RemoveAll(s.tempDir); err != nil {
				s.closeErr = errors.Join(s.closeErr, fmt.Errorf("embedded: removing the data directory: %w", err))
			}
		}
	})
	return s.closeErr
}

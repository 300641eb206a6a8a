// Package session holds what one command has on one server: the client, how patiently the server is asked, messages, what the
// user may do, and the runs of the command in the record.
package session

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Session is what one command has on one server.
type Session struct {
	Client   *mongo.Client
	URI      string // the connection string, whose credentials no message shows
	Version  string // of this program
	Patience *patience.Patience
	Pace     *patience.Pace // of all writes; nil if it is not limited
	Messages
	Recording
}

// Messages are how work tells what it finds, and how far it is.
type Messages interface {
	Warn(format string, args ...any)
	// Progress shows how many documents of a collection were read. total is the number of documents to
	// read, or -1 if it is not known. doing says what is done, such as "scanning".
	Progress(total int64, doing, namespace string) terminal.Progress
	// About sets the collection that further messages are about.
	About(namespace string)
	// Child returns the messages of one of several collections that are worked on at once.
	Child(namespace string) Messages
}

// Recording is how the runs of a command are recorded.
type Recording struct {
	Migration string // random id; empty without the directory of a migration
	Directory string // its path
	Lock      string // of that directory, as of record.FileID; empty if it is not known
	TakeOver  bool   // take over from runs that have not ended
	// BatchTimeout is the time limit of a batch, and for how long a server may carry out one of a run
	// that was lost. 0 stands for the default of the server.
	BatchTimeout time.Duration
	Halves       bool // the server ends a batch at its time limit, so that a smaller one is tried
}

// Child returns the session for one of several collections that are worked on at once.
func (s *Session) Child(namespace string) *Session {
	child := *s
	child.Messages = s.Messages.Child(namespace)
	return &child
}

// Do calls f, and again while the server is lost or overloaded.
func (s *Session) Do(ctx context.Context, f func() error) error { return s.Patience.Do(ctx, f) }

// Explain describes err in one sentence without credentials.
func (s *Session) Explain(err error) *failure.Error { return failure.Explain(err, s.URI) }

// Limit sets the time limit of a batch, unless it is set. It asks the server whether it ends what
// exceeds its limit: only then is nothing lost if the limit is short.
func (s *Session) Limit(ctx context.Context, db *mongo.Database, collection string) error {
	if s.Halves {
		return nil
	}
	enforced, err := server.EnforcesTime(ctx, db.Collection(collection))
	if err != nil {
		return err
	}
	s.Halves = enforced
	switch {
	case s.BatchTimeout != 0:
	case enforced:
		s.BatchTimeout = bulk.Enforced
	default:
		s.BatchTimeout = bulk.Timeout
	}
	return nil
}

// Gentle returns the number of documents in a batch and the number of workers of each of several
// conversions at once, reduced to what the server can handle.
func (s *Session) Gentle(ctx context.Context, atOnce, batch, workers int) (int, int) {
	limit := server.WriteLimit(ctx, s.Client)
	if limit == 0 {
		return batch, workers
	}
	limit = max(1, limit/atOnce)
	batch = min(batch, limit)
	return batch, min(workers, max(1, limit/batch))
}

// Package uuidaudit finds binary values in the traffic of a client that are UUIDs in a
// representation that is not the client's.
//
// No codec sees the octets that a program puts into a [bson.Binary] or a []byte by hand, what
// bson.Marshal wrote without a registry, or a raw document. Such UUIDs are stored as subtype 0, or
// as another subtype than the client's, and queries do not find them. An [Audit] is a command
// monitor that looks at each command and reports them:
//
//	audit, err := uuidaudit.New(uuidrep.Standard, uuidaudit.Log(slog.Default()))
//	opts.SetMonitor(audit.Monitor(nil))
//
// The option WithAudit of package clientopt does this for a connection string.
//
// # What is looked at
//
// The documents, filters, updates, array filters and pipelines of insert, update, delete, find,
// findAndModify, aggregate, count, distinct, bulkWrite and explain; in replies, the batches of
// find, aggregate and getMore, and the value of findAndModify. Other commands are not, so the UUIDs
// that servers and drivers write themselves (lsid, info.uuid, collectionUUID, keyId of an encrypted
// collection) are not reported. In the events of a change stream only the user's documents are
// looked at. The databases admin, config and local are left out.
//
// # What is reported
//
// Binary values of 16 bytes: of subtype 0, always, and of subtype 3 or 4 if the client has a
// representation and neither it nor one of [WithAlso] has this subtype. A subtype 0 value of 16
// bytes can also be a hash; [WithIgnore] leaves a namespace out. The field data of a collection whose
// name ends with .chunks, which has the bytes of GridFS files, is not reported if it has subtype 0.
// Values are never reported.
package uuidaudit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/bsonids/bsonids/uuidrep"
)

// Part says in which part of a command or of a reply a value was found.
type Part string

// The parts of commands and replies.
const (
	Document    Part = "document"     // of an insert or a replacement
	Filter      Part = "filter"       // also projections and the values of let, min and max
	Update      Part = "update"       // also a replacement: a command has them in one place
	ArrayFilter Part = "array filter" // of an update
	Pipeline    Part = "pipeline"     // of aggregate
	Reply       Part = "reply"        // a document that the server returned
)

// A Finding is a place in a command or a reply that holds UUIDs in a foreign form. It contains no
// values of the user's.
type Finding struct {
	Database   string
	Collection string // "" for an aggregate of a database
	Command    string // the name of the command: "insert", "find"
	Part       Part
	// Path is the path of the field: field names joined by dots, "items.*.product". An element of
	// an array, and a key that may be data, is "*". A name that programs use as data but that looks
	// like a field name, such as the key "alice" of a map, is shown.
	Path    string
	Subtype byte // 0, 3 or 4
	Count   int  // how many values of the command or the reply have this path and subtype
}

// String returns the finding as one line of text.
func (f Finding) String() string {
	return fmt.Sprintf("%s.%s: %s: %s: %s: %d 16-byte binary of subtype %d",
		f.Database, f.Collection, f.Command, f.Part, f.Path, f.Count, f.Subtype)
}

// An Option configures an [Audit].
type Option func(*Audit) error

// WithAlso adds a representation that the client reads or matches beside its own, such as that of
// bsoncodec.RegistryBuilder.AlsoDecode: its subtype is not foreign. [uuidrep.Unspecified] is an
// error.
func WithAlso(r uuidrep.Representation) Option {
	return func(a *Audit) error { return a.allow(r) }
}

// WithSampleRate looks at a share of the commands, chosen at random: from 0, none, to 1, all, which
// is the default. A reply is looked at if its command was. Other numbers are an error.
func WithSampleRate(rate float64) Option {
	return func(a *Audit) error {
		if !(rate >= 0 && rate <= 1) {
			return fmt.Errorf("uuidaudit: the sample rate %v is not between 0 and 1", rate)
		}
		a.rate = rate
		return nil
	}
}

// WithIgnore leaves namespaces out: "database.collection", or "database" for all its collections.
// An empty name is an error.
func WithIgnore(namespaces ...string) Option {
	return func(a *Audit) error {
		for _, ns := range namespaces {
			if ns == "" {
				return errors.New("uuidaudit: WithIgnore: empty namespace")
			}
			a.ignore[ns] = true
		}
		return nil
	}
}

// An Audit reports UUIDs in foreign forms. It is safe for concurrent use.
type Audit struct {
	report  func(Finding)
	foreign [256]bool // by subtype
	rate    float64
	ignore  map[string]bool

	mu       sync.Mutex
	requests map[int64]request // what a reply needs to know of its command
	order    []int64           // the requests from the oldest on, as a ring
	next     int               // the place of the oldest, once the ring is full
}

// maxRequests bounds the commands of which an Audit awaits the reply. The reply to a command that
// was pushed out is not looked at.
const maxRequests = 4096

// New returns an Audit for a client with the representation r. It calls report for each finding,
// synchronously, from the goroutines that run the commands: report must be safe for concurrent use
// and should return soon. With [uuidrep.Unspecified] subtype 0 alone is reported.
//
// A nil report, a nil Option and an unknown representation are errors.
func New(r uuidrep.Representation, report func(Finding), opts ...Option) (*Audit, error) {
	if report == nil {
		return nil, errors.New("uuidaudit: nil function")
	}
	a := &Audit{report: report, rate: 1, ignore: map[string]bool{}, requests: map[int64]request{}}
	a.foreign[bson.TypeBinaryGeneric] = true
	if r != uuidrep.Unspecified {
		a.foreign[bson.TypeBinaryUUIDOld], a.foreign[bson.TypeBinaryUUID] = true, true
		if err := a.allow(r); err != nil {
			return nil, err
		}
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("uuidaudit: nil Option")
		}
		if err := opt(a); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *Audit) allow(r uuidrep.Representation) error {
	subtype, err := r.Subtype()
	if err != nil {
		return fmt.Errorf("uuidaudit: %w", err)
	}
	a.foreign[subtype] = false
	return nil
}

// Monitor returns a command monitor that looks at each event and then calls next, which may be nil
// and may lack functions.
func (a *Audit) Monitor(next *event.CommandMonitor) *event.CommandMonitor {
	if next == nil {
		next = &event.CommandMonitor{}
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			a.started(e)
			if next.Started != nil {
				next.Started(ctx, e)
			}
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
			a.succeeded(e)
			if next.Succeeded != nil {
				next.Succeeded(ctx, e)
			}
		},
		Failed: func(ctx context.Context, e *event.CommandFailedEvent) {
			a.finish(e.RequestID)
			if next.Failed != nil {
				next.Failed(ctx, e)
			}
		},
	}
}

// A request is what the reply to a command needs to know of it.
type request struct {
	command    string
	collection string
	changes    bool // of the reply, the events of a change stream alone are looked at
}

func (a *Audit) await(id int64, r request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[id] = r
	if len(a.order) < maxRequests {
		a.order = append(a.order, id)
		return
	}
	delete(a.requests, a.order[a.next])
	a.order[a.next] = id
	a.next = (a.next + 1) % maxRequests
}

// finish returns what is known of a command whose reply came, and forgets it.
func (a *Audit) finish(id int64) (request, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.requests[id]
	delete(a.requests, id)
	return r, ok
}

func (a *Audit) sampled() bool { return a.rate == 1 || rand.Float64() < a.rate }

func (a *Audit) ignored(database, collection string) bool {
	switch database {
	case "admin", "config", "local":
		return true
	}
	return len(a.ignore) > 0 && (a.ignore[database] || a.ignore[database+"."+collection])
}

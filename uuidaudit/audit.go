// Package uuidaudit finds binary values in the traffic of a client that are UUIDs in a
// representation that is not the client's.
//
// No codec sees the octets that a program puts into a [bson.Binary] or a []byte by hand, what
// bson.Marshal wrote without a registry, or a raw document. Such UUIDs are stored as subtype 0, or
// as another subtype than the client's, and queries do not find them. An [Audit] is a command
// monitor that looks at each command and reports them:
//
//	audit, err := uuidaudit.New(uuidrep.Standard, uuidaudit.Log(slog.Default()))
//	if err != nil {
//		return err
//	}
//	opts.SetMonitor(audit.Monitor(nil))
//	client, err := mongo.Connect(opts)
//
// The option WithAudit of package clientopt does this for a connection string:
//
//	client, err := clientopt.Connect(uri, clientopt.WithAudit(uuidaudit.Log(slog.Default())))
//
// # What is looked at
//
//   - the documents, filters, updates, array filters and pipelines of insert, update, delete, find, findAndModify,
//     aggregate, count, distinct, mapReduce, bulkWrite and explain, and the scope of code in them
//   - the partial filters of createIndexes, and the validators and views of create and collMod
//   - in replies, the batches of find, aggregate and getMore, and the values of findAndModify, distinct and mapReduce;
//     in the events of a change stream, the documents of the user alone
//
// The databases admin, config and local are left out. [Audit.Missed] counts the replies that an Audit could not look at.
//
// Other commands, and other fields of these, are not looked at. The UUIDs that servers and drivers write themselves (lsid,
// info.uuid, collectionUUID, keyId of an encrypted collection) are therefore not reported. Neither are UUIDs in a sort, a
// hint or a comment, in upserted ids and the details of errors, in the replies of listCollections, listIndexes and
// explain, in the definitions of search indexes, and in encrypted or compressed data. An Audit sees only what is read or
// written while it watches. The command bsonids scan reads everything that is stored.
//
// # What is reported
//
// Binary values of 16 bytes: of subtype 0, always, and of subtype 3 or 4 if the client has a
// representation and neither it nor one of [WithAlso] has this subtype. A subtype 0 value of 16
// bytes can also be a hash; [WithIgnore] leaves a namespace out. The field data of a collection whose
// name ends with .chunks, which has the bytes of GridFS files, is not reported if it has subtype 0.
// With [WithText], the filters that compare with the text of a UUID are reported, too. Values are never reported.
//
// A filter in the client's own form can find nothing because the data has another form. The filter is not reported: no
// octet of it is foreign. The data is reported as soon as a command returns it.
package uuidaudit

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/bsonids/bsonids/uuidrep"
)

// The parts of commands and replies, see [Finding].
const (
	inDocument    = "document"
	inFilter      = "filter"
	inUpdate      = "update"
	inArrayFilter = "array filter"
	inPipeline    = "pipeline"
	inReply       = "reply"
)

// A Finding is a place in a command or a reply that holds UUIDs in a foreign form. It contains no
// values of the user's.
type Finding struct {
	Database   string
	Collection string // "" for an aggregate of a database
	Command    string // the name of the command: "insert", "find"
	// Part is the part of the command or the reply: "document" of an insert or a replacement; "filter",
	// also for projections, validators, and the values of let, min, max and scopes; "update", also for
	// a replacement where a command has both in one place; "array filter" of an update; "pipeline" of
	// aggregate or a view; "reply", a document that the server returned.
	Part string
	// Path is the path of the field: field names joined by dots, "items.*.product". An element of
	// an array, and a key that may be data, is "*". A name that programs use as data but that looks
	// like a field name, such as the key "alice" of a map, is shown.
	Path    string
	Subtype byte // 0, 3 or 4
	Text    bool // the values are strings, and have no subtype; see WithText
	Count   int  // how many values of the command or the reply have this path and form
}

// String returns the finding as one line of text.
func (f Finding) String() string {
	form := fmt.Sprintf("16-byte binary of subtype %d", f.Subtype)
	if f.Text {
		form = "UUID as text"
	}
	return fmt.Sprintf("%s.%s: %s: %s: %s: %d %s", f.Database, f.Collection, f.Command, f.Part, f.Path, f.Count, form)
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

// WithText also reports the text of a UUID, in the form of 8-4-4-4-12 hexadecimal digits, in filters, array filters and
// pipelines. Such a filter, as u.String() or an unparsed parameter of a request makes it, matches no binary value. Leave
// namespaces that store UUIDs as text out by [WithIgnore].
func WithText() Option {
	return func(a *Audit) error {
		a.text = true
		return nil
	}
}

// An Audit reports UUIDs in foreign forms. It is safe for concurrent use.
type Audit struct {
	report  func(Finding)
	foreign [256]bool // by subtype
	text    bool
	rate    float64
	ignore  map[string]bool

	mu       sync.Mutex
	requests map[int64]*list.Element // the request of each command whose reply has not come
	order    list.List               // the requests from the oldest on
	missed   int64
}

// maxRequests bounds the commands whose replies an Audit awaits at one time.
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
	a := &Audit{report: report, rate: 1, ignore: map[string]bool{}, requests: map[int64]*list.Element{}}
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

// Missed returns how many replies were not looked at because more than 4096 commands awaited theirs: these are the replies
// of the oldest ones. Commands that [WithSampleRate] or [WithIgnore] leaves out are not counted.
func (a *Audit) Missed() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missed
}

// A request keeps what is needed of a command when its reply comes.
type request struct {
	id         int64
	command    string
	collection string
	path       string // of the values of distinct
	changes    bool   // of the reply, the events of a change stream alone are looked at
}

func (a *Audit) await(r request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) >= maxRequests {
		delete(a.requests, a.order.Remove(a.order.Front()).(request).id)
		a.missed++
	}
	a.requests[r.id] = a.order.PushBack(r)
}

// finish returns what is known of a command whose reply came, and forgets it.
func (a *Audit) finish(id int64) (request, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.requests[id]
	if !ok {
		return request{}, false
	}
	delete(a.requests, id)
	return a.order.Remove(e).(request), true
}

func (a *Audit) sampled() bool { return a.rate == 1 || rand.Float64() < a.rate }

func (a *Audit) ignored(database, collection string) bool {
	switch database {
	case "admin", "config", "local":
		return true
	}
	return len(a.ignore) > 0 && (a.ignore[database] || a.ignore[database+"."+collection])
}

// Package record keeps the record of the conversions of a database in one of its collections, and
// the lock that prevents two conversions of a collection at the same time.
//
// Each run that writes inserts one document. Its _id consists of the name of the collection and a
// number, the epoch, which is one more than the epoch of the previous run. If several runs start at
// the same time, one inserts the document and the others get a duplicate key error. A run changes
// only its own document, because a server may lose one of two concurrent updates. Before each
// batch, it checks whether a document with a later epoch takes over from it.
package record

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Name is the name of the collection.
const Name = "bsonids.migrations"

// The kinds of runs.
const (
	Convert    = "convert"
	Undo       = "undo"
	Switch     = "switch"     // of a cutover, into the new collection
	SwitchBack = "switchback" // the same, back to the old collection
)

// The outcomes of runs that have ended.
const (
	Done    = "done"    // nothing is left to do
	Stopped = "stopped" // by an interrupt or an error; the same command resumes the run
)

// Run is the document of one run. Times are those of the server.
type Run struct {
	ID         string           `bson:"_id"` // collection/epoch
	Kind       string           `bson:"kind"`
	kinds.Task `bson:",inline"` // without pairs for a cutover
	UUID       *bson.Binary     `bson:"collectionUUID,omitempty"` // UUID of the collection, if the server reports one
	Epoch      int64            `bson:"epoch"`
	// Conversion is the same for all runs of a conversion of a migration, and for its undos.
	Conversion string `bson:"conversion"`
	// TakesOver lists the epochs of runs that have not ended, and must not write any more.
	TakesOver []int64 `bson:"takesOver,omitempty"`

	// Change is the number of the last update that the run has made of its document.
	Change int64 `bson:"change"`

	By      Who        `bson:"by"`
	Started time.Time  `bson:"started"`
	Updated time.Time  `bson:"updated"`
	Ended   *time.Time `bson:"ended,omitempty"` // every write has been answered, unless Lost is set
	// Lost is how long before its end the run sent the last batch to which there was no answer, at most.
	Lost    time.Duration `bson:"lost,omitempty"`
	Outcome string        `bson:"outcome,omitempty"`
	Reason  string        `bson:"reason,omitempty"` // why the run stopped
	// Migration is the random id of the migration that the run is of, which its plan has.
	Migration string `bson:"migration,omitempty"`

	// IntoUUID is the UUID of the copy, if the server reports one. It is nil until the run has found or made the copy.
	IntoUUID *bson.Binary `bson:"intoUUID,omitempty"`

	// BatchTimeout is an upper bound of the duration of a write, in nanoseconds.
	BatchTimeout time.Duration `bson:"batchTimeout"`
	Directory    string        `bson:"directory,omitempty"` // of the migration
	Lock         string        `bson:"lock,omitempty"`      // of that directory, as of FileID
	Log          Log           `bson:"log"`

	Decisions []decide.Decision `bson:"decisions,omitempty"` // as the pairs
	Progress  Progress          `bson:"progress"`
	Differs   bool              `bson:"differs,omitempty"` // the copy still differed from its source at the end of the run
	Verified  *Verified         `bson:"verified,omitempty"`
	Undone    *Undone           `bson:"undone,omitempty"`
}

// Log is how much of its undo log a run has brought to the disk, before it changes what the log has.
type Log struct {
	Size int64 `bson:"size"` // in bytes
	Sum  int64 `bson:"sum"`  // CRC-32C of these bytes
}

// Who identifies the process of a run.
type Who struct {
	User    string `bson:"user"`
	Host    string `bson:"host"`
	PID     int    `bson:"pid"`
	Token   string `bson:"token"` // random, one for each run; its undo log has it for a name
	Version string `bson:"version"`
}

func (w Who) String() string { return fmt.Sprintf("%s@%s, process %d", w.User, w.Host, w.PID) }

// Progress is the progress of a run.
type Progress struct {
	Documents int64 `bson:"documents"` // about how many documents there are to read
	Read      int64 `bson:"read"`
	Changed   int64 `bson:"changed"` // documents
	Values    int64 `bson:"values"`
	Skipped   int64 `bson:"skipped"` // documents
}

// Verified is the result of the last proof.
type Verified struct {
	At     time.Time `bson:"at"`
	Proven bool      `bson:"proven"`
	By     string    `bson:"by"`
}

// Undone is the progress of the undo of a conversion.
type Undone struct {
	Complete bool   `bson:"complete"`
	By       string `bson:"by"` // _id of the run, which has the times
	// Lost is set if the undo went without the undo log of the run, or without its end: the values are still converted, and
	// the log restores them if it is found.
	Lost bool `bson:"lost,omitempty"`
	// GivenUp is set, with Lost, if a person has said that the log will not be found: the values forbid nothing any more.
	GivenUp bool `bson:"givenUp,omitempty"`
}

// Switches reports whether the run is of a cutover.
func (r *Run) Switches() bool { return r.Kind == Switch || r.Kind == SwitchBack }

func (r *Run) String() string {
	what := fmt.Sprintf("a conversion of %s %s", r.Collection, kinds.Describe(r.Pairs))
	switch r.Kind {
	case Undo:
		what = "the undo of " + what
	case Switch, SwitchBack:
		what = "a cutover of " + r.Collection
	}
	return fmt.Sprintf("%s by %s on %s (process %d, begun %s, epoch %d)", what, r.By.User, r.By.Host, r.By.PID,
		r.Started.UTC().Format(time.DateTime), r.Epoch)
}

func id(collection string, epoch int64) string { return fmt.Sprintf("%s/%d", collection, epoch) }

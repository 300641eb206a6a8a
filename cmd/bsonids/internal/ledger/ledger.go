// Package ledger keeps what a migration has done: the one truth that commands read before they act.
//
// A ledger is a [journal]. A run first writes its random id to it. Then it writes facts, each with its
// name: an intention before a file is made or the server is asked, and the result after. What the ledger does
// not have as a result, the server is asked for. Everything is on the disk when a call returns.
//
// Others learn of a conversion from its record in the database. [Judge] compares the two.
package ledger

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
)

const format = "bsonids ledger 1, see: bsonids show FILE\n"

// ErrFormat is wrapped by the error of a file that is not a ledger of this version.
var ErrFormat = errors.New("it is not a ledger of this version")

// Facts are facts by name, in JSON. A fact that is written again replaces the one before.
type Facts map[string]json.RawMessage

// Ledger is a ledger that is open for writing. It is safe for concurrent use.
type Ledger struct {
	id    string
	mu    sync.Mutex // held while a record is written
	facts Facts
	runs  []string
	w     *journal.Writer // nil if the ledger is only read
}

// entry is a record: the id of the ledger, which is the first, the beginning of a run, or facts. A fact that is
// null is gone.
type entry struct {
	ID  string `json:"id,omitempty"`
	Run string `json:"run,omitempty"`
	Set Facts  `json:"set,omitempty"`
}

// New returns the content of a file with a new ledger. The file must appear whole: a file without it is
// not a ledger.
func New() []byte {
	b, _ := json.Marshal(entry{ID: NewID()}) // a string
	return journal.First(format, b)
}

// Open opens a ledger. It cuts a torn record off. It does not change a file that is not a whole ledger.
func Open(f journal.File) (*Ledger, error) {
	l, end, err := read(f)
	if err == nil {
		l.w, err = journal.NewWriter(f, l.id, end)
	}
	return l, err
}

// WriteText writes the records of a ledger, which are JSON, to w, one on each line.
func WriteText(w io.Writer, f journal.File) error {
	_, _, err := each(f, func(record []byte) error {
		_, err := fmt.Fprintf(w, "%s\n", record)
		return err
	})
	return err
}

func read(f journal.File) (l *Ledger, end int64, err error) {
	l = &Ledger{facts: Facts{}}
	l.id, end, err = each(f, func(record []byte) error {
		var e entry
		if err := json.Unmarshal(record, &e); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		l.take(e)
		return nil
	})
	return l, end, err
}

// each calls f for each record but the first. It returns the id of the ledger, and where the records
// end.
func each(file journal.File, f func(record []byte) error) (id string, end int64, err error) {
	b, begin, err := journal.Begin(file, format)
	if errors.Is(err, journal.ErrFormat) {
		err = ErrFormat
	}
	if err != nil {
		return "", 0, err
	}
	var one entry
	if json.Unmarshal(b, &one) != nil || one.ID == "" {
		return "", 0, ErrFormat
	}
	end, err = journal.Whole(file, one.ID, begin, func(record []byte, _ int64) error { return f(record) })
	return one.ID, end, err
}

func (l *Ledger) take(e entry) {
	if e.Run != "" {
		l.runs = append(l.runs, e.Run)
	}
	for name, fact := range e.Set {
		if string(fact) == "null" {
			delete(l.facts, name)
		} else {
			l.facts[name] = fact
		}
	}
}

// NewID returns a random id: 16 hexadecimal digits.
func NewID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// ID returns the random id of the ledger, which a copy of it has, too.
func (l *Ledger) ID() string { return l.id }

// Begin writes the id of a run, which must be done before the record has it.
func (l *Ledger) Begin(run string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(entry{Run: run})
}

// Knows reports whether the ledger has the run.
func (l *Ledger) Knows(run string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.runs, run)
}

// Facts returns the facts whose names begin with under, by the rest of their names.
func (l *Ledger) Facts(under string) Facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	facts := Facts{}
	for name, fact := range l.facts {
		if rest, ok := strings.CutPrefix(name, under); ok {
			facts[rest] = fact
		}
	}
	return facts
}

// Set makes the facts those whose names begin with under: it writes what differs, in one record. Facts that are
// not in the map are gone.
func (l *Ledger) Set(under string, facts Facts) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	set := Facts{}
	for name, fact := range facts {
		if !bytes.Equal(l.facts[under+name], fact) {
			set[under+name] = fact
		}
	}
	for name := range l.facts {
		rest, ok := strings.CutPrefix(name, under)
		if _, stays := facts[rest]; ok && !stays {
			set[name] = json.RawMessage("null")
		}
	}
	if len(set) == 0 {
		return nil
	}
	return l.append(entry{Set: set})
}

// append writes a record. The caller holds l.mu.
func (l *Ledger) append(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := l.w.Append(b, []int{len(b)}); err != nil {
		return err
	}
	l.take(e)
	return nil
}

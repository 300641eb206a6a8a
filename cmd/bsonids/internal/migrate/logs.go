package migrate

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// Old is what is known of the old values of a conversion in place: its runs in the record that have changed something and
// were not undone, and its logs in the directory, which neither the record nor they themselves call undone.
type Old struct {
	Task kinds.Task
	Runs []*record.Run
	Logs undolog.Logs
	// Lost has an error for each log that the record names and that is missing, cut off or damaged, and Unknown the logs
	// whose runs the record does not have.
	Lost    []error
	Unknown []*undolog.Reader
	// LostRuns has the random ids of the runs of these logs.
	LostRuns []string
}

// Key tells the conversions in place of a database apart.
func key(t kinds.Task) plan.Entry { return plan.Entry{Collection: t.Collection, Filter: t.Filter} }

// Olds returns what is known of the old values of the conversions in place of a migration, in the order of the steps of its
// plan, and then in that in which they began. broken has the errors of logs that cannot be read, and that are neither
// those of the runs of these conversions nor known to have nothing to restore. The caller must close all logs by calling done.
func (r *Recorded) Olds(state *plan.State) (olds []*Old, broken []error, done func() error, err error) {
	return r.olds(state, state.Logs)
}

// olds is Olds with the logs that open opens.
func (r *Recorded) olds(state *plan.State, open func() ([]*undolog.Reader, map[string]error, error)) (olds []*Old, broken []error, done func() error, err error) {
	logs, unread, err := open()
	if err != nil {
		return nil, nil, nil, files.FileError(err)
	}
	done = undolog.Logs(logs).Close
	of := make(map[plan.Entry]*Old)
	old := func(t kinds.Task) *Old {
		o := of[key(t)]
		if o == nil {
			o = &Old{}
			of[key(t)], olds = o, append(olds, o)
		}
		return o
	}
	for _, run := range r.Runs {
		if run.Migration != state.Plan.Migration || !run.Stands() {
			continue
		}
		o := old(run.Task)
		o.Task, o.Runs = run.Task, append(o.Runs, run) // that of the last run has what those before it have converted
		if run.Log.Size == 0 {
			continue
		}
		i := slices.IndexFunc(logs, func(u *undolog.Reader) bool { return u.Run == run.By.Token })
		switch {
		case i >= 0:
			if err := logs[i].Covers(written(run)); err != nil {
				o.lose(run, err)
			}
		case unread[run.By.Token] != nil:
			o.lose(run, unread[run.By.Token])
		default:
			o.lose(run, fmt.Errorf("%s %s is missing: it is that of %s", undolog.Name, undolog.Path(state.Dir(), run.By.Token), run))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unread)) {
		run := r.Named(id)
		if run == nil || run.Log.Size > 0 && !run.Restored() && (run.Migration != state.Plan.Migration || !run.Stands()) {
			broken = append(broken, unread[id])
		}
	}
	for _, u := range logs {
		run := r.Named(u.Run)
		if u.Database != state.Plan.Database || u.Undone != nil || run != nil && run.Restored() {
			continue
		}
		o := old(u.Task)
		if o.Logs = append(o.Logs, u); run == nil {
			o.Unknown = append(o.Unknown, u)
		} else if run.Migration != state.Plan.Migration || !run.Stands() { // it was not looked at above
			if err := u.Covers(written(run)); err != nil {
				o.lose(run, err)
			}
		}
		if len(o.Runs) == 0 {
			o.Task = union(o.Task, u.Task)
		}
	}
	place := make(map[plan.Entry]int)
	for i, st := range state.Steps() {
		place[st.Entry()] = i + 1
	}
	slices.SortStableFunc(olds, func(a, b *Old) int {
		last := len(place) + 1
		return cmp.Compare(cmp.Or(place[key(a.Task)], last), cmp.Or(place[key(b.Task)], last))
	})
	for _, o := range olds {
		o.Logs = undolog.Of(o.Logs...)
	}
	return olds, broken, done, nil
}

// written returns how much of its log a run has written, as the record says.
func written(r *record.Run) undolog.Extent {
	return undolog.Extent{Size: r.Log.Size, Sum: uint32(r.Log.Sum)}
}

// Since returns an error if a run of the migration has converted values that the logs do not have, and that o does not know:
// since the record was read of which o was made.
func (o *Old) Since(now *Recorded, migration string) error {
	for _, run := range now.Runs {
		if run.Migration != migration || !run.Stands() || key(run.Task) != key(o.Task) || slices.Contains(o.LostRuns, run.By.Token) ||
			slices.ContainsFunc(o.Runs, func(r *record.Run) bool { return r.ID == run.ID && r.Log == run.Log }) ||
			slices.ContainsFunc(o.Logs, func(u *undolog.Reader) bool { return u.Run == run.By.Token && u.Covers(written(run)) == nil }) {
			continue
		}
		return &failure.Error{Kind: failure.Failed, Text: run.String() + " has converted values since the record was read: give the command again"}
	}
	return nil
}

// lose notes that the log of a run is lost.
func (o *Old) lose(run *record.Run, err error) {
	o.Lost, o.LostRuns = append(o.Lost, err), append(o.LostRuns, run.By.Token)
}

// union returns a task with the pairs of both.
func union(a, b kinds.Task) kinds.Task {
	if len(a.Pairs) == 0 {
		return b
	}
	a.Pairs = slices.Clone(a.Pairs)
	for _, p := range b.Pairs {
		i := slices.IndexFunc(a.Pairs, p.Alike)
		if i < 0 {
			a.Pairs = append(a.Pairs, p)
			continue
		}
		for _, f := range p.Fields {
			if !slices.Contains(a.Pairs[i].Fields, f) {
				a.Pairs[i].Fields = append(slices.Clone(a.Pairs[i].Fields), f)
			}
		}
	}
	return a
}

// UUID returns the UUID of the collection that was converted, or nil if it is not known.
func (o *Old) UUID() *bson.Binary {
	for _, r := range slices.Backward(o.Runs) {
		if r.UUID != nil {
			return r.UUID
		}
	}
	for _, u := range slices.Backward(o.Logs) {
		if b, err := hex.DecodeString(u.CollectionUUID); err == nil && len(b) > 0 {
			return &bson.Binary{Subtype: bson.TypeBinaryUUID, Data: b}
		}
	}
	return nil
}

// Replaced reports whether the collection is another one than that which was converted. Documents that
// it lacks were then not deleted: they may be in a collection of another name.
func (o *Old) Replaced(spec *mongo.CollectionSpecification) bool {
	was := o.UUID()
	return was != nil && spec.UUID != nil && !spec.UUID.Equal(*was)
}

// errReplaced is wrapped by [ReplacedError].
var errReplaced = errors.New("the collection was replaced")

// ReplacedError returns the error of work that does not find what was converted.
func ReplacedError(namespace string) error {
	return &failure.Error{Kind: failure.Failed, Text: namespace + " is another collection than the one that was converted, which was dropped or renamed: " +
		"what became of its values is unknown; give the collection its name back", Err: errReplaced}
}

// IncompleteLogs returns the error of work that lacks entries of undo logs. so says what follows, and remedy what a person
// can do.
func IncompleteLogs(so, remedy string, broken ...error) error {
	var texts []string
	for _, err := range broken {
		text := err.Error()
		if path := (*os.PathError)(nil); errors.As(err, &path) { // without the name of the operation
			text = path.Path + ": " + path.Err.Error()
		}
		texts = append(texts, text)
	}
	return &failure.Error{Kind: failure.Failed, Text: strings.Join(texts, "; ") + ": " + so + " without what is missing; " + remedy, Err: errors.Join(broken...)}
}

// PutBack is what a person can do about a log that is missing.
const PutBack = "put the files back"

// Faults returns what is wrong with the undo logs of a migration: by their sizes, and if checksums is set, by all that they have.
func (r *Recorded) Faults(state *plan.State, checksums bool) (faults []error, err error) {
	open := state.Glance
	if checksums {
		open = state.Logs
	}
	olds, broken, done, err := r.olds(state, open)
	if err != nil {
		return nil, err
	}
	for _, o := range olds {
		faults = append(faults, o.Lost...)
		for _, u := range o.Unknown {
			// Only the log itself tells whether it is undone.
			whole, err := undolog.Open(u.Path())
			if err == nil && whole.Undone == nil {
				err = UnknownLog(u)
			}
			if err != nil {
				faults = append(faults, err)
			}
			if whole != nil {
				_ = whole.Close()
			}
		}
	}
	return append(faults, broken...), done()
}

// UnknownLog returns the error of a log whose run the record lacks.
func UnknownLog(u *undolog.Reader) error {
	return fmt.Errorf("%s %s is of a run that the record lacks: nothing tells whether it has lost its end", undolog.Name, filepath.Clean(u.Path()))
}

// Unanswered returns for how long a server may carry out a batch of an undo, or of a run whose log is in the directory, of which
// the record knows nothing: for each collection, the limit of a batch by the logs of such runs, less the time for which the record
// has had a run of the collection, before which they have ended. A log that cannot be read may be of any collection, and of a run
// with the limit unread.
func (r *Recorded) Unanswered(state *plan.State, unread time.Duration) (map[string]time.Duration, error) {
	logs, broken, err := state.Logs()
	if err != nil {
		return nil, files.FileError(err)
	}
	limits := make(map[string]time.Duration)
	of := func(collection string, limit time.Duration) {
		left := limit
		for _, run := range r.Runs {
			if run.Collection == collection {
				left = min(left, limit-r.Now.Sub(run.Started))
			}
		}
		if left > 0 {
			limits[collection] = max(limits[collection], left)
		}
	}
	for _, u := range logs {
		if u.Database == state.Plan.Database && r.Named(u.Run) == nil {
			of(u.Task.Collection, u.Limit)
		}
	}
	for id, err := range broken {
		if r.Named(id) != nil || errors.Is(err, undolog.ErrFormat) { // a file of something else
			continue
		}
		for _, st := range state.Steps() {
			of(st.Collection, unread)
		}
	}
	return limits, undolog.Logs(logs).Close()
}

// await waits until a batch is over that Unanswered tells of.
func await(ctx context.Context, s *session.Session, limit time.Duration) error {
	if limit == 0 {
		return nil
	}
	s.Warn("the record lacks the runs that have written the undo logs: waiting for %s, in which a server may carry out a batch of theirs", limit)
	return patience.Sleep(ctx, limit)
}

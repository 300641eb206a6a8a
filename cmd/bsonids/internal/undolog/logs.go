package undolog

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Logs are the logs of the runs of one conversion, in the order in which the runs began.
type Logs []*Reader

// Of returns the logs as one sequence.
func Of(all ...*Reader) Logs {
	logs := Logs(slices.Clone(all))
	slices.SortStableFunc(logs, func(a, b *Reader) int {
		return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.Run, b.Run))
	})
	for i, u := range logs {
		u.index = i
	}
	return logs
}

// Each calls f for the entries that are not void: those of the last log first, and of each log in the order in which they
// were written.
func (l Logs) Each(f func(Entry) error) error {
	for _, u := range slices.Backward(l) {
		if err := u.each(f); err != nil {
			return err
		}
	}
	return nil
}

// All calls f for all entries in the order in which they were written, also for those that are void.
func (l Logs) All(f func(Entry) error) error {
	for _, u := range l {
		if err := u.all(f); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the logs.
func (l Logs) Close() (err error) {
	for _, u := range l {
		err = errors.Join(err, u.Close())
	}
	return err
}

// In opens the logs in the directory dir. unread has the errors of those that cannot be read, by the runs that their names
// say: one without a whole header was left by a process that was killed while it made the log, if nothing was recorded of it.
// The caller must close the logs.
func In(dir string) (logs []*Reader, unread map[string]error, err error) { return in(dir, Open) }

// Glance is [In], but reads only the headers of the logs, whose sizes are known then.
func Glance(dir string) (logs []*Reader, unread map[string]error, err error) { return in(dir, glance) }

func in(dir string, open func(path string) (*Reader, error)) (logs []*Reader, unread map[string]error, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	unread = make(map[string]error)
	for _, e := range entries {
		run, ok := strings.CutSuffix(e.Name(), Ext)
		if !ok {
			continue
		}
		u, err := open(filepath.Join(dir, e.Name()))
		if err != nil {
			unread[run] = err
			continue
		}
		logs = append(logs, u)
	}
	return logs, unread, nil
}

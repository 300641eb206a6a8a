package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
)

// judge sets the judge of the conversion: by the decision in its state, or by a list of values.
func (w *worker) judge(opts *convert.Options) error {
	opts.Conversion = slices.Clone(w.Conversion)
	if err := opts.Conversion.Decide(w.state.Decisions); err != nil {
		return failure.Usagef("the state file %s: %v", w.State, err)
	}
	if w.Listed.State != "" {
		return w.listed(opts)
	}
	return nil
}

// listed prepares a conversion of the values of trusted fields that an earlier conversion has listed.
func (w *worker) listed(opts *convert.Options) error {
	s, err := convert.ReadState(w.Listed.State)
	if err == nil {
		opts.Retry, err = convert.ReadListed(w.Listed.SkipList, s, w.Conversion)
	}
	if err != nil {
		return migration.FileError(err)
	}
	for i, p := range w.ID.Pairs {
		opts.Conversion[i].Judge = decide.Retry(&w.state.Decisions[i], opts.Conversion[i].From, p.Trust)
	}
	return nil
}

// mayWrite returns a usage error if there are values but no field has a value to convert.
func mayWrite(decisions []decide.Decision) error {
	var reasons []string
	for _, d := range decisions {
		if len(d.Fields) == 0 {
			return nil
		}
		for _, f := range d.Fields {
			if f.Converted() {
				return nil
			}
			reasons = append(reasons, f.Path+": "+f.Reason)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	const most = 5
	if n := len(reasons) - most; n > 0 {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more fields", n))
	}
	return failure.Usagef("nothing was converted: %s; run bsonids scan to see the byte order, and add trust: true to a field whose values do not determine it",
		strings.Join(reasons, "; "))
}

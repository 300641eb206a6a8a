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
	d := w.state.Decision
	if d == nil || slices.ContainsFunc(w.Trust, func(t string) bool { return !slices.Contains(d.Trusted, t) }) {
		return failure.Usagef("the state file %s is of another pass", w.State)
	}
	if w.Listed.State != "" {
		return w.listed(opts)
	}
	opts.Conversion.Judge = d.Judge(w.Conversion.From.Order)
	return nil
}

// listed prepares a conversion of the values of trusted fields that an earlier conversion has listed.
func (w *worker) listed(opts *convert.Options) error {
	s, err := convert.ReadState(w.Listed.State)
	if err == nil {
		opts.Retry, err = convert.ReadListed(w.Listed.SkipList, s, w.ID.Fields)
	}
	if err != nil {
		return migration.FileError(err)
	}
	opts.Conversion.Judge = decide.Retry(w.state.Decision, w.Conversion.From, w.Trust)
	return nil
}

// mayWrite returns a usage error if there are values but no field has a value to convert.
func mayWrite(d *decide.Decision) error {
	var reasons []string
	for _, f := range d.Fields {
		if f.Converted() {
			return nil
		}
		reasons = append(reasons, f.Path+": "+f.Reason)
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

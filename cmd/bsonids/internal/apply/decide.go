package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// decision holds which values are converted, and what was found while deciding that.
type decision struct {
	*decide.Decision
	references *report.References // nil if there was no search
	earlier    bool               // an earlier run made the decision
}

// judge sets the judge of the conversion: by a decision, or by a list of values to retry.
func (w *worker) judge(ctx context.Context, run *migration.Claim, opts *convert.Options, about *report.Conversion) error {
	switch {
	case w.Retry != "":
		return w.retry(opts)
	case w.Listed.State != "":
		return w.listed(opts)
	}
	d, err := w.decision(ctx)
	if err != nil {
		return err
	}
	opts.Conversion.Judge = d.Judge(w.Conversion.From.Order)
	about.Decision, about.References, about.Earlier = d.Decision, d.references, d.earlier
	if !w.Write {
		return nil
	}
	return w.Do(ctx, func() error { return run.Decided(ctx, d.Decision) })
}

// decision returns which values are converted. It takes the decision from the state, or else from
// the record of an earlier run, or else makes it from a pass over the whole collection, and saves
// it in the state. The error is a usage error if nothing can be converted.
func (w *worker) decision(ctx context.Context) (decision, error) {
	slices.Sort(w.Trust)
	switch saved, err := w.saved(); {
	case err != nil:
		return decision{}, err
	case saved != nil && slices.ContainsFunc(w.Trust, func(t string) bool { return !slices.Contains(saved.Trusted, t) }):
		return decision{}, failure.Usagef("--state %s: the decision was made with other --trust flags (%s); give the same ones",
			w.State, strings.Join(saved.Trusted, ", "))
	case saved != nil:
		return decision{Decision: saved, earlier: true}, nil
	}
	d, err := w.recorded(ctx)
	if err != nil {
		return decision{}, err
	}
	if d.Decision == nil {
		earlier, err := survey.Earlier(ctx, w.db, w.described())
		if err != nil && !w.unread(err) {
			return decision{}, err
		}
		if d, err = w.decide(ctx, earlier); err != nil {
			return decision{}, err
		}
	}
	if w.Write {
		if err := MayWrite(d.Decision); err != nil {
			return decision{}, err
		}
	}
	w.warnOfReferences(d.references)
	if w.state != nil {
		w.state.Decision = d.Decision
		if err := w.state.Save(); err != nil {
			return decision{}, err
		}
	}
	return d, nil
}

// described returns the run whose decision about the collection is wanted.
func (w *worker) described() record.Run {
	return record.Run{Collection: w.ID.Collection, UUID: w.spec.UUID, From: w.ID.From, To: w.ID.To, FromSubtype: w.Conversion.From.Subtype,
		Fields: w.ID.Fields, Query: w.ID.Query}
}

// unread reports whether a dry run goes on without a record that the user may not read.
func (w *worker) unread(err error) bool {
	return err != nil && !w.Write && failure.Explain(err, "").Kind == failure.Denied
}

// recorded returns the decision of an earlier run over the collection, with the fields to trust added.
// Decision is nil if there is none.
func (w *worker) recorded(ctx context.Context) (decision, error) {
	if w.DecideAnew {
		return decision{}, nil
	}
	var d decide.Decision
	found, err := record.Decision(ctx, w.db, w.described(), &d)
	if w.unread(err) {
		return decision{}, nil
	}
	if err != nil || !found {
		return decision{}, err
	}
	if unknown := d.Trust(w.Trust); len(unknown) > 0 {
		return decision{}, failure.Usagef("--trust %s: no such field existed on %s, when an earlier run made the decision; "+
			"--decide-anew makes a new one", strings.Join(unknown, ", "), d.Made.UTC().Format(time.DateTime))
	}
	return decision{Decision: &d, earlier: true}, nil
}

// saved returns the decision in the state, or nil if there is none. A dry run reads the file and
// does not change it.
func (w *worker) saved() (*decide.Decision, error) {
	switch {
	case w.Decided != nil:
		return w.Decided, nil
	case w.state != nil:
		return w.state.Decision, nil
	case w.State == "":
		return nil, nil
	}
	s, err := convert.ReadState(w.State)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, migration.FileError(err)
	}
	return s.Decision, nil
}

// retry prepares a conversion of the values that the list to retry names.
func (w *worker) retry(opts *convert.Options) error {
	list, err := convert.ReadSkipList(w.Retry, w.namespace(), w.Conversion.From.Subtype)
	if err != nil {
		var e *convert.RecordError
		if errors.As(err, &e) {
			err = e.Err
		}
		return failure.Usagef("--retry %s: %v", w.Retry, err)
	}
	for _, t := range w.Trust {
		if !list.Lists(t) {
			return failure.Usagef("--trust %s: --retry %s has no value of such a field", t, w.Retry)
		}
	}
	saved, err := w.saved()
	if err != nil {
		return err
	}
	if w.State != "" && saved == nil {
		return failure.Usagef("--state %s has no decision; with --retry, give the state file of the conversion that wrote the list, or none", w.State)
	}
	// The state belongs to the conversion that made the list, and is not changed. The list says
	// what remains to be done.
	opts.State, opts.Retry = nil, list
	opts.Conversion.Judge = decide.Retry(saved, decide.Question{Kind: w.Conversion.From, Trusted: w.Trust})
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
	opts.Conversion.Judge = decide.Retry(w.state.Decision, decide.Question{Kind: w.Conversion.From, Trusted: w.Trust})
	return nil
}

// MayWrite returns a usage error if there are values but no field has a value to convert.
func MayWrite(d *decide.Decision) error {
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
	return failure.Usagef("nothing was converted: %s; run bsonids scan to see the byte order, and give --trust FIELD for a field whose values do not determine it",
		strings.Join(reasons, "; "))
}

// decide makes the decision from all values of the collection, and searches for equal values among
// those that are not converted.
func (w *worker) decide(ctx context.Context, earlier map[string][]decide.Rival) (d decision, err error) {
	s := decide.NewSurvey(tempBeside(w.State), time.Now(), decide.Question{Kind: w.Conversion.From, Wanted: w.Conversion.Selects, Trusted: w.Trust})
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := s.Collection(w.ID.Database, w.ID.Collection, true)
	if err != nil {
		return decision{}, err
	}
	c.Earlier = earlier
	query := w.Query
	if query == nil {
		query = bson.D{}
	}
	if err := w.Survey(ctx, w.coll, query, c); err != nil {
		return decision{}, err
	}
	if len(query) > 0 && c.Documents() == 0 {
		return decision{}, failure.Usagef("--query: no document of %s matches", w.namespace())
	}
	r, err := w.search(ctx, s, query)
	if err != nil {
		return decision{}, err
	}
	if err := s.Decide(); err != nil {
		return decision{}, err
	}
	r.Left = s.Elsewhere()
	if unknown := s.Unknown(); len(unknown) > 0 {
		return decision{}, failure.Usagef("--trust %s: no such field has %s", strings.Join(unknown, ", "), w.Conversion.From.Values())
	}
	d = decision{Decision: c.Decision(w.Conversion.From), references: r}
	if w.Conversion.From.BySubtype() {
		d.BySubtype, d.Fields = true, []decide.Field{}
	}
	return d, nil
}

// tempBeside returns the directory for the temporary files of work that writes path.
func tempBeside(path string) string {
	if path == "" {
		return os.TempDir()
	}
	return filepath.Dir(path)
}

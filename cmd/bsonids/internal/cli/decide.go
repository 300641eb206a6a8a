package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// decision holds which values are converted, and what was found while deciding that.
type decision struct {
	*decide.Decision
	references *report.References // nil if there was no search
	earlier    bool               // an earlier run made the decision
}

// decision returns which values are converted. It takes the decision from the state, or else from
// the record of an earlier run, or else makes it from a pass over the whole collection, and saves
// it in the state. The error is a usage error if nothing can be converted.
func (o *convertOptions) decision(ctx context.Context, coll *mongo.Collection, opts convert.Options, id convert.Identity,
	spec *mongo.CollectionSpecification,
) (decision, error) {
	conv, state := opts.Conversion, opts.State
	slices.Sort(o.trust)
	switch saved, err := o.saved(state); {
	case err != nil:
		return decision{}, err
	case saved != nil && slices.ContainsFunc(o.trust, func(t string) bool { return !slices.Contains(saved.Trusted, t) }):
		return decision{}, failure.Usagef("--state %s: the decision was made with other --trust flags (%s); give the same ones",
			o.state, strings.Join(saved.Trusted, ", "))
	case saved != nil:
		return decision{Decision: saved, earlier: true}, nil
	}
	if begun(state) && conv.SameSubtype() {
		return decision{}, failure.Usagef("--state %s has no decision, because an older version started the conversion, and the order of half-converted values "+
			"cannot be determined; finish it with that version, or undo it with bsonids undo", o.state)
	}
	d, err := o.recorded(ctx, coll, id, spec)
	if err != nil {
		return decision{}, err
	}
	if d.Decision == nil {
		earlier, err := o.found(ctx, coll, conv, id, spec)
		if err != nil {
			return decision{}, err
		}
		if d, err = o.decide(ctx, coll, conv, opts.Query, earlier); err != nil {
			return decision{}, err
		}
	}
	if o.write {
		if err := mayWrite(d.Decision); err != nil {
			return decision{}, err
		}
	}
	o.warnOfReferences(d.references)
	if state != nil {
		state.Decision = d.Decision
		if err := state.Save(); err != nil {
			return decision{}, err
		}
	}
	return d, nil
}

// found returns, by field, the orders that earlier conversions of the collection have found. A value
// that fits one of these, too, may have been left by such a conversion because it fits both orders.
func (o *convertOptions) found(ctx context.Context, coll *mongo.Collection, conv convert.Conversion, id convert.Identity,
	spec *mongo.CollectionSpecification,
) (map[string][]decide.Rival, error) {
	if o.noRecord {
		return nil, nil
	}
	out := make(map[string][]decide.Rival)
	err := record.Others(ctx, coll.Database(), record.Run{Collection: id.Collection, UUID: spec.UUID, From: id.From, FromSubtype: conv.From.Subtype, Query: id.Query},
		func(unmarshal func(any) error) error {
			var d decide.Decision
			if err := unmarshal(&d); err != nil {
				return err
			}
			for field, r := range d.Found() {
				out[field] = append(out[field], r)
			}
			return nil
		})
	if err != nil && !o.write && failure.Explain(err, "").Kind == failure.Denied {
		return nil, nil
	}
	return out, err
}

// recorded returns the decision of an earlier run over the collection, with the fields of --trust
// added. Decision is nil if there is none.
func (o *convertOptions) recorded(ctx context.Context, coll *mongo.Collection, id convert.Identity, spec *mongo.CollectionSpecification) (decision, error) {
	if o.noRecord || o.decideAnew {
		return decision{}, nil
	}
	var d decide.Decision
	found, err := record.Decision(ctx, coll.Database(), record.Run{Collection: id.Collection, UUID: spec.UUID, From: id.From, To: id.To,
		Fields: id.Fields, Query: id.Query}, &d)
	if err != nil && !o.write && failure.Explain(err, "").Kind == failure.Denied {
		return decision{}, nil
	}
	if err != nil || !found {
		return decision{}, err
	}
	if unknown := d.Trust(o.trust); len(unknown) > 0 {
		return decision{}, failure.Usagef("--trust %s: no such field existed on %s, when an earlier run made the decision; "+
			"--decide-anew makes a new one", strings.Join(unknown, ", "), d.Made.UTC().Format(time.DateTime))
	}
	return decision{Decision: &d, earlier: true}, nil
}

// saved returns the decision in the state, or nil if there is none. A dry run reads the file and
// does not change it.
func (o *convertOptions) saved(state *convert.StateFile) (*decide.Decision, error) {
	if state != nil {
		return state.Decision, nil
	}
	if o.state == "" {
		return nil, nil
	}
	s, err := convert.ReadState(o.state)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.Usagef("%v", nameFlag(err))
	}
	return s.Decision, nil
}

// begun reports whether an earlier run has written anything.
func begun(s *convert.StateFile) bool {
	return s != nil && (s.Position != nil || s.UndoID != "" || s.Created)
}

// again prepares a conversion of the values that the list of --retry names.
func (o *convertOptions) again(opts *convert.Options) error {
	conv := opts.Conversion
	list, err := convert.ReadSkipList(o.retry, o.database+"."+o.collection, conv.From.Subtype)
	if err != nil {
		var e *convert.RecordError
		if errors.As(err, &e) {
			err = e.Err
		}
		return failure.Usagef("--retry %s: %v", o.retry, err)
	}
	for _, t := range o.trust {
		if !list.Lists(t) {
			return failure.Usagef("--trust %s: --retry %s has no value of such a field", t, o.retry)
		}
	}
	saved, err := o.saved(opts.State)
	if err != nil {
		return err
	}
	if o.state != "" {
		if saved == nil {
			return failure.Usagef("--state %s has no decision; with --retry, give the state file of the conversion that wrote the list, or none", o.state)
		}
	}
	// The state belongs to the conversion that made the list, and is not changed. The list says
	// what remains to be done.
	opts.State, opts.Retry = nil, list
	opts.Conversion.Judge = decide.Retry(saved, decide.Question{Kind: conv.From, Trusted: o.trust})
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
	return failure.Usagef("nothing was converted: %s; run bsonids scan to see the byte order, and give --trust FIELD for a field whose values do not determine it",
		strings.Join(reasons, "; "))
}

// openSkipList opens the list for the values that are left unchanged: the file of --skip-list, or a
// new file.
func (o *convertOptions) openSkipList(state *convert.StateFile) (*convert.SkipList, error) {
	namespace := o.database + "." + o.collection
	path, goOn := o.skipList, state != nil && state.Decision != nil
	switch {
	case path == "" && !o.write:
		return nil, nil
	case path == "" && o.retry != "":
		goOn = false
		stem := strings.TrimSuffix(o.retry, ".jsonl")
		for n := 2; path == "" || exists(path); n++ {
			path = fmt.Sprintf("%s-%d.jsonl", stem, n)
		}
	case path == "" && o.state != "":
		path = o.state + ".skipped.jsonl"
	case path == "":
		goOn = false
		stem := strings.Map(func(r rune) rune {
			if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
				return '_'
			}
			return r
		}, namespace)
		path = stem + ".skipped.jsonl"
		for n := 2; exists(path); n++ {
			path = fmt.Sprintf("%s.skipped-%d.jsonl", stem, n)
		}
	}
	if err := o.distinctFiles(path); err != nil {
		return nil, err
	}
	list, err := convert.OpenSkipList(path, namespace, goOn)
	if err != nil {
		return nil, fileError(err, "%v", nameFlag(err))
	}
	return list, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

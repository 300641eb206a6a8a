package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// UndoOptions describe an undo.
type UndoOptions struct {
	Write        bool
	AllowChanged bool // values that cannot be restored are accepted, and the undo is complete
	Batch        int
	// WithoutLost restores the rest if undo logs are missing, cut off or damaged, and WithoutRecord goes by the headers of the
	// logs whose runs the record lacks.
	WithoutLost, WithoutRecord bool
	WithoutReleased            bool // groups of collections that were released stay as they are, and the others are restored
}

// UndoneStep is the result of the undo of one conversion. Begun is false if there was nothing to undo.
type UndoneStep struct {
	Step
	Begun  bool           `json:"undone"`
	Result convert.Undone `json:"result"`
}

// Undo undoes all conversions of a migration, as the record and the undo logs in its directory have them, in the opposite order
// of the work. The state must be locked if the undo writes. putBack is called before anything is changed: it puts the
// collections back in whose places there are copies. A collection that is not there, or is another one now, is an error after the others
// are restored. The steps are valid with an error, too.
func Undo(ctx context.Context, s *session.Session, o UndoOptions, state *plan.State, putBack func() error) (steps []UndoneStep, err error) {
	if o.Write {
		s.Pace = patience.Steered(plan.SteeringOf(state.Dir()), s.Warn)
	}
	o.Batch, _ = s.Gentle(ctx, 1, o.Batch, 1)
	recorded, err := ReadRecord(ctx, s, state.Plan.Database)
	if failure.IsDenied(err) && !o.Write {
		recorded, err = &Recorded{}, nil
	}
	if err != nil {
		return nil, err
	}
	olds, broken, done, err := recorded.Olds(state)
	if err != nil {
		return nil, err
	}
	defer func() { _ = done() }()
	all := state.Steps()
	for _, old := range olds {
		all = append(all, plan.Step{Task: old.Task})
	}
	denied, err := s.Allowed(ctx, WorkOf(state.Plan, all), o.Write, privilege.Undo)
	if err != nil {
		return nil, err
	}
	if len(olds) == 0 && !slices.ContainsFunc(state.Conversions(), func(c string) bool {
		return recorded.Step(c, plan.Step{}.Task).Status != NotBegun
	}) && len(broken) == 0 {
		return nil, failure.Usagef("%s: nothing was converted by the plan, as the record and the directory tell", state.Dir())
	}
	if err := recorded.HasCopies(state, true); err != nil {
		return nil, err
	}
	if olds, err = recorded.unreleased(s, o, state, olds); err != nil {
		return nil, err
	}
	if err := whole(s, o, olds, broken); err != nil {
		return nil, err
	}
	others := Recorded{Cutovers: slices.DeleteFunc(slices.Clone(recorded.Cutovers), func(c *record.Cutover) bool {
		return slices.ContainsFunc(c.Collections, func(x record.Exchange) bool { return slices.Contains(state.Conversions(), x.Maker) })
	})}
	for _, old := range olds { // the cutovers of the plan are undone
		if err := others.notFenced(state.Plan.Database, old.Task); err != nil {
			return nil, err
		}
	}
	if err := putBack(); err != nil {
		return nil, err
	}
	if o.Write {
		begin(s, state)
		if recorded, err = ReadRecord(ctx, s, state.Plan.Database); err != nil { // cutovers may have been undone
			return nil, err
		}
	}
	var failed error // of the first collection that is not there any more
	for _, old := range slices.Backward(olds) {
		namespace := state.Plan.Namespace(old.Task.Collection)
		u, err := restore(ctx, s.Child(namespace), o, state, recorded, old)
		u.Step = recorded.Step(state.Plan.Conversion(old.Task), old.Task).Step
		steps = append(steps, u)
		if err == nil {
			continue
		}
		err = &failure.CollectionError{Collection: old.Task.Collection, Err: err}
		switch {
		case !errors.Is(err, server.ErrMissing) && !errors.Is(err, errReplaced):
			return steps, err
		case failed != nil:
			s.Warn("%v", err)
		default: // it says nothing about the others
			failed = err
		}
	}
	for _, st := range slices.Backward(state.Steps()) {
		if st.Into == "" && slices.ContainsFunc(olds, func(old *Old) bool {
			return old.Task.Collection == st.Collection && old.Task.Filter == st.Filter
		}) {
			continue
		}
		steps = append(steps, UndoneStep{Step: recorded.Step(state.Plan.Conversion(st.Task), st.Task).Step})
	}
	switch {
	case failed != nil:
		return steps, failed
	case !o.Write:
		return steps, denied
	}
	return steps, forget(ctx, s, state, recorded)
}

// forget records that the copies of the migration that no cutover has put in place are left to the user: the next apply makes new
// ones.
func forget(ctx context.Context, s *session.Session, state *plan.State, recorded *Recorded) error {
	for _, t := range recorded.Converted(state.Plan.Migration) {
		name := state.Plan.Conversion(t)
		if x, _ := recorded.Exchange(name); t.Into == "" || x != nil {
			continue
		}
		if err := leave(ctx, s, state.Plan.Database, t, name, record.Undone{Complete: true}); err != nil {
			return err
		}
	}
	return nil
}

// HasCopies returns a usage error if the plan does not have a conversion any more that has made a copy: one that a cutover
// exchanges or has exchanged, or none has, as exchanged says. Which collections are exchanged, put back, or stay converted together with
// that copy would not be known.
func (r *Recorded) HasCopies(state *plan.State, exchanged bool) error {
	for _, t := range r.Converted(state.Plan.Migration) {
		name := state.Plan.Conversion(t)
		_, c := r.Exchange(name)
		if t.Into == "" || (c != nil) != exchanged || slices.Contains(state.Conversions(), name) {
			continue
		}
		is := "its copy is made"
		if exchanged {
			is = fmt.Sprintf("a cutover of %s is in the state %q", strings.Join(c.Names(), ", "), c.State)
		}
		return failure.Usagef("%q: the plan does not convert it into %s any more, and %s; nothing is changed: put the entry back as it was", t.Collection, t.Into, is)
	}
	return nil
}

// unreleased returns what is known of the old values of conversions in place, without the collections that refer to one that was
// released. The error is a usage error if there are any, unless they may stay, or if there is nothing else to undo.
func (r *Recorded) unreleased(s *session.Session, o UndoOptions, state *plan.State, olds []*Old) ([]*Old, error) {
	var released, others []string
	for _, g := range state.Groups() {
		var names []string
		of := ""
		for _, st := range g {
			names = append(names, st.Collection)
			if _, c := r.Exchange(state.Plan.Conversion(st.Task)); c != nil && (c.State == record.Releasing || c.State == record.Released) {
				of = st.Collection
			}
		}
		if of == "" {
			others = append(others, names...)
			continue
		}
		if o.WithoutReleased {
			s.Warn("%s: a cutover of %s was released, and collections that refer to each other stay converted together", strings.Join(names, ", "), of)
		}
		released = append(released, names...)
	}
	switch {
	case len(released) == 0, len(others) == 0 && !o.WithoutReleased: // the cutovers say when they were released
		return olds, nil
	case len(others) == 0:
		return nil, failure.Usagef("%s stay converted, because a cutover of them was released: there is nothing else to undo", strings.Join(released, ", "))
	case !o.WithoutReleased:
		return nil, failure.Usagef("%s stay converted, because a cutover of them was released, which is the point of no return; nothing is changed: "+
			"give --without-released to undo the rest, %s", strings.Join(released, ", "), strings.Join(others, ", "))
	}
	return slices.DeleteFunc(olds, func(old *Old) bool { return slices.Contains(released, old.Task.Collection) }), nil
}

// whole returns an error that names each undo log that is missing, cut off or damaged, or whose run the record lacks, unless
// the user accepts that.
func whole(s *session.Session, o UndoOptions, olds []*Old, broken []error) error {
	var unknown []error
	lost := slices.Clone(broken)
	for _, old := range olds {
		lost = append(lost, old.Lost...)
		for _, u := range old.Unknown {
			unknown = append(unknown, fmt.Errorf("%s %s is of a run that the record lacks", undolog.Name, u.Path()))
		}
	}
	switch {
	case len(lost) > 0 && !o.WithoutLost:
		return IncompleteLogs("values would stay converted", PutBack+", or restore the rest with --without-lost-logs", lost...)
	case len(unknown) > 0 && !o.WithoutRecord:
		return IncompleteLogs("nothing tells whether a log has lost its end", "put the record back, or go by the logs with --without-record", unknown...)
	}
	for _, err := range lost {
		s.Warn("%v: the values that it had stay converted", err)
	}
	for _, err := range unknown {
		s.Warn("%v: nothing tells whether it has lost its end", err)
	}
	return nil
}

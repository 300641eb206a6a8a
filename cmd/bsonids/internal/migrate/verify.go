package migrate

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// Proof is what bsonids verify found.
type Proof struct {
	Database string      `json:"database"`
	Dump     *DumpProof  `json:"dump,omitempty"` // nil for a database of a server
	Proven   bool        `json:"proven"`
	Steps    []StepProof `json:"steps"`
}

// StepProof is the result of a proof of one conversion.
type StepProof struct {
	Step
	Proven bool             `json:"proven"`
	Reason string           `json:"reason,omitempty"`  // why the conversion is not finished, if its last run is in progress or has stopped
	Basis  Basis            `json:"restsOn,omitempty"` // empty if the conversion has not begun or was undone
	Result convert.Verified `json:"result"`
}

// Basis is what a proof is based on.
type Basis string

// The bases. A report says what each of them proves.
const (
	RestsOnUndoLog Basis = "undoLog"
	RestsOnSource  Basis = "source" // the collection that was copied
)

// Left returns the number of values that were to be converted, or listed, and are left.
func (p Proof) Left() (n int64) {
	for _, s := range p.Steps {
		n += s.Result.Left
	}
	return n
}

// verification is a proof of the conversions of a migration.
type verification struct {
	*session.Session
	state        *plan.State
	recorded     *Recorded
	db           *mongo.Database
	allowChanged bool // accept documents that other programs changed or deleted since
}

// Verify verifies all conversions of a migration, as the record has them, and as the undo logs in its directory tell.
func Verify(ctx context.Context, s *session.Session, state *plan.State, allowChanged bool) (p Proof, err error) {
	v := &verification{Session: s, state: state, db: s.Client.Database(state.Plan.Database), allowChanged: allowChanged}
	if v.recorded, err = ReadRecord(ctx, s, state.Plan.Database); failure.IsDenied(err) {
		v.recorded, err = &Recorded{}, nil
	}
	if err != nil {
		return p, err
	}
	olds, broken, done, err := v.recorded.Olds(state)
	if err != nil {
		return p, err
	}
	defer func() { _ = done() }()
	if len(broken) > 0 {
		return p, IncompleteLogs("nothing is proven", PutBack, broken...)
	}
	p = Proof{Database: state.Plan.Database, Steps: []StepProof{}}
	add := func(t kinds.Task, old *Old) error {
		of, err := v.step(ctx, t, old)
		if err != nil {
			return &failure.CollectionError{Collection: t.Collection, Err: err}
		}
		p.Steps = append(p.Steps, of)
		return nil
	}
	for _, st := range state.Steps() {
		var old *Old
		if i := slices.IndexFunc(olds, func(o *Old) bool {
			return st.Into == "" && o.Task.Collection == st.Collection && o.Task.Filter == st.Filter
		}); i >= 0 {
			old = olds[i]
			olds = slices.Delete(slices.Clone(olds), i, i+1)
		}
		if err := add(st.Task, old); err != nil {
			return p, err
		}
	}
	for _, old := range olds { // that the plan does not have any more
		if err := add(old.Task, old); err != nil {
			return p, err
		}
	}
	if err := unselected(ctx, s, v.db, state.Plan.Filters()); err != nil {
		return p, err
	}
	p.Proven = !slices.ContainsFunc(p.Steps, func(s StepProof) bool { return !s.Proven })
	return p, nil
}

// step verifies one conversion. old is nil if nothing was converted in place.
func (p *verification) step(ctx context.Context, t kinds.Task, old *Old) (out StepProof, err error) {
	conversion := p.state.Plan.Conversion(t)
	out.Step = p.recorded.Step(conversion, t).Step
	last := p.recorded.Last(conversion)
	if last == nil && old == nil {
		return out, nil
	}
	if last != nil && last.Undone != nil {
		return out, failure.Usagef("an undo of %q began: there is no conversion to verify", t.Collection)
	}
	// What has ended since may have written more than the logs that are open have.
	finished := last == nil || last.Outcome == record.Done
	if !finished {
		out.Reason = unfinished(last, p.recorded.Now)
	}
	ended := last != nil && last.Ended != nil
	if last != nil {
		if last, err = patience.Ask(ctx, p.Patience, func() (*record.Run, error) { return record.RunOf(ctx, p.db, last.ID) }); err != nil {
			return out, err
		}
		t = last.Task
	} else {
		t = old.Task
	}
	out.Task = t
	what, err := Describe(p.state.Plan.Database, t)
	if err != nil {
		return out, err
	}
	if last != nil {
		if err := what.Conversion.Decide(last.Decisions); err != nil {
			return out, failure.Usagef("%s: %v", p.state.Dir(), err)
		}
	}
	var v convert.Verified
	if t.Into == "" {
		out.Basis = RestsOnUndoLog
		v, err = p.inPlace(ctx, what, old)
	} else {
		out.Basis = RestsOnSource
		var exchanged string
		var dropped bool
		if v, exchanged, dropped, err = p.copied(ctx, what, conversion); exchanged != "" { // the cutover has brought the copy up to date
			finished, out.Reason = true, ""
		}
		if dropped {
			return out, err
		}
	}
	if err != nil {
		return out, err
	}
	v.Finished = &finished
	out.Result, out.Proven = v, v.Holds(p.allowChanged)
	// A user who may read everything may lack the privilege to write the record. The proof holds
	// without it.
	if ended {
		_ = record.MarkVerified(ctx, p.db, last, out.Proven, p.Version)
	}
	return out, nil
}

// inPlace verifies a conversion in place by its logs.
func (p *verification) inPlace(ctx context.Context, what Described, old *Old) (v convert.Verified, err error) {
	if old == nil { // nothing was changed
		old = &Old{Task: what.Task}
	}
	if len(old.Lost) > 0 {
		return v, IncompleteLogs("nothing is proven", PutBack, old.Lost...)
	}
	coll, namespace := p.db.Collection(what.Task.Collection), p.state.Plan.Namespace(what.Task.Collection)
	s := p.Child(namespace)
	for _, u := range old.Unknown {
		s.Warn("%v: values that its end had are not proven", UnknownLog(u))
	}
	var spec *mongo.CollectionSpecification
	var total int64
	err = s.Do(ctx, func() (err error) {
		if spec, err = server.FindCollection(ctx, coll); err != nil {
			return err
		}
		total, err = coll.EstimatedDocumentCount(ctx)
		return err
	})
	if err != nil {
		return v, err
	}
	bar := s.Progress(total, "verifying", namespace)
	v, err = (&convert.Verification{Selection: what.Selection, UUID: spec.UUID, Undo: old.Logs, Patience: s.Patience, Progress: bar.Add}).Verify(ctx, coll)
	bar.Done()
	switch {
	case err != nil:
		return v, err
	case v.Gone > 0 && old.Replaced(spec):
		return v, ReplacedError(namespace)
	case what.Query != nil && v.Read == 0 && v.Proven == 0:
		return v, failure.Usagef("%s: no document matches the filter", namespace)
	}
	return v, nil
}

// copied verifies a copy by its source. It returns the state of the cutover that has exchanged the two. dropped is set if
// there is no source any more.
func (p *verification) copied(ctx context.Context, what Described, conversion string) (v convert.Verified, exchanged string, dropped bool, err error) {
	st := what.Task
	namespace := p.state.Plan.Namespace(st.Collection)
	s := p.Child(namespace)
	old, fresh := st.Collection, st.Into
	var total int64
	err = s.Do(ctx, func() (err error) {
		if old, fresh, exchanged, dropped, err = pair(ctx, p.db, st, conversion); err != nil || dropped {
			return err
		}
		if exchanged == record.Released {
			there, err := p.db.ListCollectionNames(ctx, bson.D{{Key: "name", Value: old}})
			if dropped = len(there) == 0; err != nil || dropped {
				return err
			}
		}
		for _, name := range []string{old, fresh} {
			if _, err = server.FindCollection(ctx, p.db.Collection(name)); err != nil {
				return err
			}
		}
		if total, err = p.db.Collection(st.Collection).EstimatedDocumentCount(ctx); what.Conversion.ReachesID() {
			total *= 2 // their _ids are read first
		}
		return err
	})
	if err != nil {
		return v, exchanged, false, err
	}
	if dropped {
		s.Warn("%s, the old collection, was dropped after the cutover: there is nothing to compare with", old)
		return v, exchanged, true, nil
	}
	bar := s.Progress(total, "verifying", namespace)
	v, err = convert.VerifyInto(ctx, p.db.Collection(old), p.db.Collection(fresh), what.Conversion, s.Patience, bar.Add)
	bar.Done()
	if exchanged == record.Releasing || exchanged == record.Released {
		v = since(v)
	}
	return v, exchanged, false, err
}

// pair returns the names of the source and of the copy, and the state of the cutover that has put the copy in
// the place of its source, if one has. The source was dropped if another cutover has begun since, which puts its own
// old collection in that place.
func pair(ctx context.Context, db *mongo.Database, st kinds.Task, conversion string) (old, fresh, state string, dropped bool, err error) {
	all, err := record.Cutovers(ctx, db)
	if failure.IsDenied(err) {
		err = nil
	}
	of := record.Last(all, []string{st.Collection}, []string{st.Into}, []string{conversion})
	if err != nil || of == nil {
		return st.Collection, st.Into, "", false, err
	}
	switch of.State {
	case record.Switching, record.RollingBack:
		return "", "", "", false, failure.Usagef("a cutover of %s is in the state %q: finish it before the proof", strings.Join(of.Names(), ", "), of.State)
	case record.Switched, record.Releasing, record.Released:
		for _, x := range of.Collections {
			if x.Name == st.Collection {
				return x.Kept, x.Name, of.State, record.Last(all, []string{x.Name}, nil, nil) != of, nil
			}
		}
	}
	return st.Collection, st.Into, "", false, nil
}

// since is the proof beside an old collection that was put away, after services have written to the new one:
// what differs may have changed since.
func since(v convert.Verified) convert.Verified {
	v.Changed, v.Gone = v.Wrong+v.Extra, v.Missing
	v.Wrong, v.Extra, v.Missing = 0, 0, 0
	for i := range v.Skips {
		s := &v.Skips[i]
		switch s.Reason {
		case mirror.Missing:
			s.Reason = "the old collection has it, and the new one does not: it was deleted since"
		case mirror.NoSource:
			s.Reason = "the new collection has it, and the old one does not: it was inserted since"
		default:
			s.Reason = "it differs from the document of the old collection: it was changed since"
		}
	}
	return v
}

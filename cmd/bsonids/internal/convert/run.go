package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/time/rate"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

const (
	batchSize = 1000
	// attempts is how often a document that others keep changing is tried.
	attempts = 5
	// writeTimeout ends a batch that a server neither does nor refuses. An interrupt doesn't: the batch is finished.
	writeTimeout = 5 * time.Minute
	// checkpointEvery is how often the state is written while documents are converted.
	checkpointEvery = time.Second
	maxListed       = 10_000
)

// Options say how a collection is converted.
type Options struct {
	Conversion Conversion
	Write      bool // otherwise nothing is changed, only counted
	Workers    int  // batches that are written at the same time
	Rate       int  // documents changed in a second; 0 for no limit
	Part       Part
	State      *StateFile // or nil
	Undo       *UndoLog   // or nil
	Batch      int        // documents to read and to write at a time; 1000 if 0
	Examples   int        // how many plans Result lists; -1 for all
	Progress   func(documents int)
	now        func() time.Time
}

// Result is what was done, or would be.
type Result struct {
	Read       int64  `json:"documentsRead"`
	Documents  int64  `json:"documentsChanged"`
	Values     int64  `json:"valuesChanged"`
	Fields     Tally  `json:"fields"` // values by field
	InID       int64  `json:"documentsWithSuchAnId"`
	Overtaken  int64  `json:"overtaken"` // another program changed or deleted the document first, and nothing was left to do
	Skipped    int64  `json:"documentsSkipped"`
	SkippedFor Tally  `json:"skippedFor,omitempty"` // by reason
	Skips      []Skip `json:"skips,omitempty"`      // the first 10,000
	Examples   []Plan `json:"-"`
}

// Skip is a document that was left as it is, or in part.
type Skip struct {
	ID     bson.RawValue
	Reason string
}

// MarshalJSON writes the _id in canonical extended JSON.
func (s Skip) MarshalJSON() ([]byte, error) {
	id, err := extJSON(s.ID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		ID     json.RawMessage `json:"_id"`
		Reason string          `json:"reason"`
	}{id, s.Reason})
}

// runner converts in place.
type runner struct {
	Options
	coll    *mongo.Collection
	tracker *tracker
	limiter *rate.Limiter
	orphans bool // the server may count more documents than it was asked to update

	// Entries of an earlier run about documents that the state doesn't know to be done, until they are read again.
	inFlight map[string]Entry

	mu     sync.Mutex
	result Result
	saved  time.Time
	// Documents changed and skipped by earlier runs.
	before, skippedBefore int64
}

type batch struct {
	number int
	plans  []Plan
	read   int
}

// InPlace converts the values of a collection, but for those in _id. When ctx ends it finishes the batches that are
// begun, saves the state and returns ctx's error with what was done. After any error the state is saved too.
func InPlace(ctx context.Context, coll *mongo.Collection, o Options) (Result, error) {
	if o.now == nil {
		o.now = time.Now
	}
	limiter := o.setUp()
	r := &runner{Options: o, coll: coll, tracker: newTracker(), limiter: limiter, result: Result{Fields: Tally{}, SkippedFor: Tally{}}}
	if o.Write && o.Conversion.SameSubtype() && (o.State == nil || o.Undo == nil) {
		return r.result, errors.New("a converted value would look like one that isn't: this conversion needs a state file and an undo log")
	}
	if o.Write {
		var err error
		if r.orphans, err = countsOrphans(ctx, coll.Database()); err != nil {
			return r.result, err
		}
	}
	p := &pages{coll: coll, projection: o.Conversion.Projection(), size: int64(r.Batch)}
	if o.Write && o.State != nil {
		if err := r.resume(ctx, p); err != nil {
			return r.result, err
		}
	}
	err := inBatches(ctx, p, r.tracker, r.Workers, r.plan, r.process)
	if o.Write && o.State != nil {
		o.State.Done = err == nil
		err = errors.Join(err, r.save())
	}
	return r.result, err
}

// countsOrphans reports whether the server is a router of MongoDB before 6.0 (wire version 17): it sends an update by _id to
// all shards, which update orphaned copies of the document too. That as many were matched as were asked for doesn't say then
// that each of them was.
func countsOrphans(ctx context.Context, db *mongo.Database) (bool, error) {
	var is struct {
		Msg            string
		MaxWireVersion int32 `bson:"maxWireVersion"`
	}
	err := db.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}).Decode(&is)
	return is.Msg == "isdbgrid" && is.MaxWireVersion < 17, err
}

// resume takes up what an earlier run left.
func (r *runner) resume(ctx context.Context, p *pages) error {
	s := r.State
	p.after = s.Position.raw()
	r.tracker.position = p.after
	r.before, r.skippedBefore = s.Changed, s.Skipped
	if r.Undo == nil {
		if s.UndoID != "" {
			return errors.New("--state: the conversion was begun with --undo; give the same undo log again")
		}
		return nil
	}
	if s.UndoID == "" && (s.Position != nil || s.Changed > 0) {
		return errors.New("--state: the conversion was begun without --undo; go on without, or begin anew with other files")
	}
	if s.UndoID != "" && s.UndoID != r.Undo.ID {
		return errors.New("--undo: it isn't the undo log that the conversion was begun with")
	}
	if s.UndoID == "" && r.Conversion.SameSubtype() && r.Undo.Size() > r.Undo.begin {
		return errors.New("--undo: it has what another run changed, whose --state is needed too, as nothing else tells a converted value; " +
			"after bsonids undo, begin with new files")
	}
	if s.UndoID == "" {
		s.UndoID, s.UndoOffset = r.Undo.ID, r.Undo.Size()
		if err := s.Save(); err != nil {
			return err
		}
	}
	u, err := ReadUndoLog(r.Undo.file.Name())
	if err != nil {
		return fmt.Errorf("--undo: %w", err)
	}
	defer func() { _ = u.Close() }()
	if err := u.Rewind(s.UndoOffset); err != nil {
		return fmt.Errorf("--undo: %w", err)
	}
	r.inFlight = make(map[string]Entry)
	for {
		e, err := u.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("--undo: %w", err)
		}
		r.inFlight[key(e.ID)] = e
	}
	// What is not read again, since it was done or is deleted, needs no entry; it would be waited for to the end.
	if err := p.retain(ctx, r.inFlight); err != nil {
		return err
	}
	if len(r.inFlight) > 0 {
		r.tracker.hold(s.UndoOffset)
	}
	return nil
}

// plan makes the batch of a page.
func (r *runner) plan(number int, docs []bson.Raw) (batch, error) {
	b := batch{number: number, read: len(docs)}
	for _, doc := range docs {
		if !r.Part.Has(doc.Lookup("_id")) {
			continue
		}
		plan, err := r.Conversion.Plan(doc)
		if err != nil {
			plan = Plan{ID: doc.Lookup("_id"), Skipped: []string{err.Error()}}
		}
		r.reconsider(&plan, doc)
		if len(plan.Changes)+len(plan.Skipped)+len(plan.InID) > 0 {
			b.plans = append(b.plans, plan)
		}
	}
	if r.inFlight != nil && len(r.inFlight) == 0 {
		r.inFlight = nil
		r.tracker.release(number)
	}
	return b, nil
}

// reconsider takes account of what an earlier run may have done to the document before it was killed. Where old and new
// value have the same subtype, only its undo log tells them apart.
func (r *runner) reconsider(p *Plan, doc bson.Raw) {
	e, ok := r.inFlight[key(p.ID)]
	if !ok {
		return
	}
	delete(r.inFlight, key(p.ID))
	p.again = true
	defer func() { p.keep(doc, e.Changes, r.Conversion.To.Subtype) }()
	if !r.Conversion.SameSubtype() {
		return
	}
	p.Changes = slices.DeleteFunc(p.Changes, func(ch Change) bool {
		for _, done := range e.Changes {
			if done.Path == ch.Path && ch.Old == done.Old {
				return false
			}
		}
		for _, done := range e.Changes {
			if done.Path == ch.Path && ch.Old == done.New {
				return true
			}
		}
		p.Skipped = append(p.Skipped, unknowable)
		return true
	})
}

const unknowable = "another program changed the document meanwhile, and nothing tells the byte order of what it wrote"

// process does one batch.
func (r *runner) process(waiting, ctx context.Context, b batch) error {
	var write []Plan
	for _, p := range b.plans {
		r.note(p)
		if r.mayWrite(p) {
			write = append(write, p)
		}
	}
	if r.Write && len(write) > 0 {
		if err := turn(waiting, r.limiter, len(write)); err != nil {
			return err
		}
		if err := r.write(ctx, b.number, write); err != nil {
			return err
		}
	} else {
		for _, p := range write {
			r.count(p)
		}
	}
	r.tracker.done(b.number)
	r.mu.Lock()
	r.result.Read += int64(b.read)
	due := r.Write && r.State != nil && r.now().Sub(r.saved) >= checkpointEvery
	r.mu.Unlock()
	r.Progress(b.read)
	if due {
		return r.save()
	}
	return nil
}

// mayWrite reports whether p has changes that can be made, and written to the undo log before; where they can't, the document
// is skipped.
func (r *runner) mayWrite(p Plan) bool {
	switch {
	case len(p.Changes) == 0:
		return false
	case r.Undo != nil && !keepsID(p.ID):
		r.skip(p.ID, "its _id cannot be written to the undo log without loss")
	case p.size() > maxUpdate:
		r.skip(p.ID, "it has more values than one update can hold: use --into")
	case r.Undo != nil && !keepsPaths(p.Changes):
		r.skip(p.ID, "the name of a field in it is not UTF-8 and cannot be written to the undo log without loss")
	default:
		return true
	}
	return false
}

func (r *runner) write(ctx context.Context, number int, plans []Plan) error {
	for attempt := range attempts {
		if r.Undo != nil {
			err := r.tracker.logged(number, func() (int64, error) {
				return r.Undo.Append(plans, r.Conversion, func(p Plan) bool { return p.again || attempt > 0 })
			})
			if err != nil {
				return err
			}
		}
		left, err := r.attempt(ctx, plans)
		if err != nil || len(left) == 0 {
			return err
		}
		plans = left
	}
	for _, p := range plans {
		r.skip(p.ID, "other programs keep changing it")
	}
	return nil
}

// attempt writes the plans and returns those to try again, made anew from what the documents are by then.
func (r *runner) attempt(ctx context.Context, plans []Plan) ([]Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	models := make([]mongo.WriteModel, len(plans))
	for i, p := range plans {
		models[i] = p.model(r.Conversion.From.Subtype, r.Conversion.To.Subtype)
	}
	res, err := r.coll.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	var refused mongo.BulkWriteException
	if err != nil && (!errors.As(err, &refused) || refused.WriteConcernError != nil || len(refused.WriteErrors) == 0) {
		return nil, err
	}
	failed := make(map[int]bool)
	for _, we := range refused.WriteErrors {
		if server.Concerns(we.Code) {
			return nil, err
		}
		if we.Code == 28 { // PathNotViable: what was a document when it was read is an array by now
			continue
		}
		failed[we.Index] = true
		r.skip(plans[we.Index].ID, reason(we.WriteError))
	}
	rest := plans
	if len(failed) > 0 {
		rest = make([]Plan, 0, len(plans))
		for i, p := range plans {
			if !failed[i] {
				rest = append(rest, p)
			}
		}
	}
	if res != nil && res.MatchedCount == int64(len(rest)) && !r.orphans {
		for _, p := range rest {
			r.count(p)
		}
		return nil, nil
	}
	return r.resolve(ctx, rest)
}

// reason says in words why the server refused an update.
func reason(we mongo.WriteError) string {
	switch we.Code {
	case 11000, 11001:
		return "the converted value stands in another document already, and an index is unique"
	case 121:
		return "the collection's validator refuses the converted document"
	}
	message, _, _ := strings.Cut(we.Message, "{")
	return fmt.Sprintf("the server refused the update: %s (code %d)", strings.TrimSpace(message), we.Code)
}

// resolve finds out which of the plans were carried out, after others changed some of the documents.
func (r *runner) resolve(ctx context.Context, plans []Plan) ([]Plan, error) {
	if len(plans) == 0 {
		return nil, nil
	}
	ids := make([]bson.RawValue, len(plans))
	for i, p := range plans {
		ids[i] = p.ID
	}
	docs, err := fetch(ctx, r.coll, ids, r.Conversion.Projection())
	if err != nil {
		return nil, err
	}
	var again []Plan
	for _, p := range plans {
		doc, ok := docs[key(p.ID)]
		if !ok {
			r.overtaken()
			continue
		}
		converted := 0
		for _, ch := range p.Changes {
			if subtype, octets, ok := at(doc, ch.Path); ok && subtype == r.Conversion.To.Subtype && octets == ch.New {
				converted++
			}
		}
		if converted == len(p.Changes) {
			r.count(p)
			continue
		}
		if !r.Conversion.SameSubtype() {
			fresh, err := r.Conversion.Plan(doc)
			if err != nil {
				r.skip(p.ID, err.Error())
				continue
			}
			for _, reason := range fresh.Skipped {
				if !slices.Contains(p.Skipped, reason) {
					r.skip(p.ID, reason)
				}
			}
			if len(fresh.Changes)+len(fresh.Skipped) == 0 {
				r.overtaken()
			} else if r.mayWrite(fresh) {
				// Some of it may have been done before the other program wrote.
				fresh.keep(doc, slices.Concat(p.Changes, p.kept), r.Conversion.To.Subtype)
				again = append(again, fresh)
			}
			continue
		}
		unchanged := 0
		for _, ch := range p.Changes {
			if subtype, octets, ok := at(doc, ch.Path); ok && subtype == r.Conversion.From.Subtype && octets == ch.Old {
				unchanged++
			}
		}
		if unchanged == len(p.Changes) {
			again = append(again, p)
		} else {
			r.skip(p.ID, unknowable)
		}
	}
	return again, nil
}

// fetch returns the documents with the ids, by key.
func fetch(ctx context.Context, coll *mongo.Collection, ids []bson.RawValue, projection bson.D) (map[string]bson.Raw, error) {
	opts := options.Find()
	if projection != nil {
		opts.SetProjection(projection)
	}
	cur, err := coll.Find(ctx, byIDs(ids), opts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	docs := make(map[string]bson.Raw, len(ids))
	for cur.Next(ctx) {
		doc := slices.Clone(cur.Current)
		docs[key(doc.Lookup("_id"))] = doc
	}
	return docs, cur.Err()
}

// note counts what a plan says beside its changes.
func (r *runner) note(p Plan) {
	for _, reason := range p.Skipped {
		r.skip(p.ID, reason)
	}
	if len(p.InID) > 0 {
		r.mu.Lock()
		r.result.InID++
		r.mu.Unlock()
		r.skip(p.ID, "the value is in _id, which cannot be changed in place: use --into")
	}
}

func (r *runner) count(p Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Documents++
	r.result.Values += int64(len(p.Changes))
	for _, ch := range p.Changes {
		r.result.Fields.add(ch.Field, 1)
	}
	if r.Options.Examples < 0 || len(r.result.Examples) < r.Options.Examples {
		r.result.Examples = append(r.result.Examples, p)
	}
}

func (r *runner) overtaken() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Overtaken++
}

func (r *runner) skip(id bson.RawValue, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Skipped++
	r.result.SkippedFor.add(reason, 1)
	if len(r.result.Skips) < maxListed {
		r.result.Skips = append(r.result.Skips, Skip{id, reason})
	}
}

// save writes the state.
func (r *runner) save() error {
	size := func() int64 { return 0 }
	if r.Undo != nil {
		size = r.Undo.Size
	}
	position, offset := r.tracker.checkpoint(size)
	r.mu.Lock()
	defer r.mu.Unlock()
	if position.Type != 0 {
		r.State.Position = newPosition(position)
	}
	r.State.UndoOffset = offset
	r.State.Changed = r.before + r.result.Documents
	r.State.Skipped = r.skippedBefore + r.result.Skipped
	r.saved = r.now()
	return r.State.Save()
}

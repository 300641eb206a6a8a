package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// exchanges returns how the collections are to be exchanged, and their conversions. The error is a
// usage error if a collection cannot be exchanged.
func (o *cutoverOptions) exchanges(ctx context.Context, db *mongo.Database, names []string) ([]record.Exchange, map[string]convert.Conversion, error) {
	var specs map[string]*mongo.CollectionSpecification
	err := o.load.patience.Do(ctx, func() error {
		all, err := db.ListCollectionSpecifications(ctx, bson.D{})
		specs = make(map[string]*mongo.CollectionSpecification, len(all))
		for i := range all {
			specs[all[i].Name] = &all[i]
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var out []record.Exchange
	conversions := make(map[string]convert.Conversion)
	used := make(map[string]bool)
	for _, name := range names {
		var run *record.Run
		var conv convert.Conversion
		err := o.load.patience.Do(ctx, func() (err error) {
			if run, err = o.copyOf(ctx, db, name, specs); err != nil {
				return err
			}
			conv, err = recordedConversion(ctx, db, run)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		if conv.MergesIDs() {
			return nil, nil, failure.Usagef("cannot exchange %s.%s: its _ids are text, which may be spelled in several ways, and the _id of a copy does not tell the one of its document", db.Name(), name)
		}
		x := record.Exchange{Name: name, New: run.Into, Kept: name + o.suffix, Run: run.ID}
		if _, ok := specs[x.Kept]; ok || used[x.Kept] {
			return nil, nil, failure.Usagef("the collection %s, the name under which %s would be kept, exists already; drop it, or give another --suffix", x.Kept, name)
		}
		if n := len(db.Name()) + 1 + len(x.Kept); n > 255 || !validCollection(x.Kept) {
			return nil, nil, failure.Usagef("%s is no name for a collection, or too long; give another --suffix", x.Kept)
		}
		used[x.Name], used[x.New], used[x.Kept] = true, true, true
		old, fresh := specs[name], specs[x.New]
		x.OldID, x.NewID, x.OldHad, x.NewHad = old.UUID, fresh.UUID, guard.SettingsOf(old), guard.SettingsOf(fresh)
		if err := o.mayExchange(ctx, db, &x, old, fresh); err != nil {
			return nil, nil, err
		}
		if !x.OldHad.Equal(x.NewHad) {
			o.warn("%s has %s; %s has other settings, which it keeps after the release: %s", x.Name, guard.Describe(x.OldHad), x.New, guard.Describe(x.NewHad))
		}
		out, conversions[name] = append(out, x), conv
	}
	for _, name := range o.copies {
		if !slices.ContainsFunc(out, func(x record.Exchange) bool { return x.New == name }) {
			if o.file != "" {
				return nil, nil, failure.Usagef("%s: %s is no copy of one of the collections; make it with bsonids apply", o.file, name)
			}
			return nil, nil, failure.Usagef("--copy %s: it is not a copy of one of the collections", name)
		}
	}
	return out, conversions, nil
}

// copyOf returns the run that made the copy of a collection.
func (o *cutoverOptions) copyOf(ctx context.Context, db *mongo.Database, name string, specs map[string]*mongo.CollectionSpecification) (*record.Run, error) {
	spec, ok := specs[name]
	if !ok {
		return nil, failure.Usagef("collection %s.%s does not exist", db.Name(), name)
	}
	if spec.Type == "view" || spec.Type == "timeseries" {
		return nil, failure.Usagef("cannot exchange %s.%s, because it is a %s", db.Name(), name, spec.Type)
	}
	runs, err := record.Copies(ctx, db, name)
	if err != nil {
		return nil, err
	}
	earlier, err := record.Cutovers(ctx, db, false)
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(r *record.Run) bool {
		return specs[r.Into] == nil || !isOfCollection(r, spec, earlier) || len(o.copies) > 0 && hasCopy(runs, o.copies) && !slices.Contains(o.copies, r.Into)
	})
	if len(runs) == 0 {
		return nil, failure.Usagef("%s.%s has no copy according to %s; make one with bsonids convert --into, or with bsonids apply and a plan that has into", db.Name(), name, record.Name)
	}
	into := runs[0].Into
	parts := make(map[string]bool)
	var skipped int64
	var whole *record.Run
	for _, r := range runs {
		if r.Into != into {
			return nil, failure.Usagef("%s.%s has several copies: %s and %s; give --copy", db.Name(), name, into, r.Into)
		}
		if r.Outcome != record.Done && (r.Progress.Stream == nil || !r.Progress.Stream.CaughtUp) {
			return nil, failure.Usagef("the copy %s of %s is not finished: %s; continue it with the same command", into, name, whyNot(r))
		}
		parts[r.Part] = true
		skipped += r.Progress.Skipped
		whole = r
	}
	if err := allParts(parts); err != nil {
		return nil, failure.Usagef("the copy %s of %s is not finished: %v", into, name, err)
	}
	if skipped > 0 && !slices.Contains(o.skipped, name) {
		return nil, failure.Usagef("the conversion of %s into %s left values in %d documents as they are; see its skip list, and give --with-skipped %s to put the copy in place nevertheless", name, into, skipped, name)
	}
	return whole, nil
}

// isOfCollection reports whether the run read the collection, as opposed to another one of the name. A
// server may have changed its UUID in a cutover that was rolled back.
func isOfCollection(r *record.Run, spec *mongo.CollectionSpecification, earlier []*record.Cutover) bool {
	if r.UUID == nil || spec.UUID == nil || r.UUID.Equal(*spec.UUID) {
		return true
	}
	return slices.ContainsFunc(earlier, func(c *record.Cutover) bool {
		return c.State == record.RolledBack && slices.ContainsFunc(c.Collections, func(x record.Exchange) bool {
			return x.Run == r.ID && x.OldID != nil && x.OldID.Equal(*spec.UUID)
		})
	})
}

func hasCopy(runs []*record.Run, copies []string) bool {
	return slices.ContainsFunc(runs, func(r *record.Run) bool { return slices.Contains(copies, r.Into) })
}

func whyNot(r *record.Run) string {
	if r.Ended == nil {
		return r.String() + " has not recorded its end"
	}
	return r.String() + " stopped: " + r.Reason
}

// allParts returns an error if parts of a conversion are missing.
func allParts(parts map[string]bool) error {
	if parts[""] {
		return nil
	}
	for p := range parts {
		_, of, _ := strings.Cut(p, "/")
		var n int
		if _, err := fmt.Sscan(of, &n); err != nil {
			return fmt.Errorf("the part %q is not valid", p)
		}
		for i := range n {
			if one := fmt.Sprintf("%d/%d", i+1, n); !parts[one] {
				return fmt.Errorf("part %s is missing", one)
			}
		}
	}
	return nil
}

// conversions returns the conversions of a cutover that is under way.
func (o *cutoverOptions) conversions(ctx context.Context, db *mongo.Database, c *record.Cutover) (map[string]convert.Conversion, error) {
	out := make(map[string]convert.Conversion)
	for _, x := range c.Collections {
		err := o.load.patience.Do(ctx, func() error {
			run, err := record.RunOf(ctx, db, x.Run)
			if err != nil {
				return err
			}
			out[x.Name], err = recordedConversion(ctx, db, run)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading the conversion of %s from %s: %w", x.Name, record.Name, err)
		}
	}
	return out, nil
}

// recordedConversion returns the conversion of a run, with its decision.
func recordedConversion(ctx context.Context, db *mongo.Database, r *record.Run) (convert.Conversion, error) {
	fail := func(err error) (convert.Conversion, error) {
		return convert.Conversion{}, fmt.Errorf("the document %s of %s: %w", r.ID, record.Name, err)
	}
	from, err := kinds.Parse(r.From)
	if err != nil {
		return fail(err)
	}
	to, err := kinds.Parse(r.To)
	if err != nil {
		return fail(err)
	}
	fields, err := patterns(r.Fields)
	if err != nil {
		return fail(err)
	}
	c, err := convert.NewConversion(from, to, fields)
	if err != nil {
		return fail(err)
	}
	var d decide.Decision
	found, err := record.DecisionOf(ctx, db, r.ID, &d)
	if err != nil {
		return c, err
	}
	if !found {
		return fail(fmt.Errorf("it has no decision about the values"))
	}
	c.Judge = d.Judge(from.Order)
	return c, nil
}

// mayFence detects again what would make the exchange fail: the comparison may have taken hours.
func (o *cutoverOptions) mayFence(ctx context.Context, db *mongo.Database, c *record.Cutover) error {
	var specs []mongo.CollectionSpecification
	err := o.load.patience.Do(ctx, func() (err error) {
		specs, err = db.ListCollectionSpecifications(ctx, bson.D{})
		return err
	})
	if err != nil {
		return err
	}
	find := func(name string) *mongo.CollectionSpecification {
		if i := slices.IndexFunc(specs, func(s mongo.CollectionSpecification) bool { return s.Name == name }); i >= 0 {
			return &specs[i]
		}
		return nil
	}
	for _, x := range c.Collections {
		old, fresh := find(x.Name), find(x.New)
		switch {
		case old == nil || fresh == nil:
			return failure.Usagef("%s or %s was dropped or renamed while the documents were compared", x.Name, x.New)
		case find(x.Kept) != nil:
			return failure.Usagef("a collection %s was created while the documents were compared", x.Kept)
		}
		x.OldHad, x.NewHad = guard.SettingsOf(old), guard.SettingsOf(fresh)
		if err := o.mayExchange(ctx, db, &x, old, fresh); err != nil {
			return err
		}
	}
	return nil
}

// mayExchange detects what would make the exchange fail later, or would be missing after it.
func (o *cutoverOptions) mayExchange(ctx context.Context, db *mongo.Database, x *record.Exchange, old, fresh *mongo.CollectionSpecification) error {
	for _, spec := range []*mongo.CollectionSpecification{old, fresh} {
		capped, _ := spec.Options.Lookup("capped").BooleanOK()
		level, _ := spec.Options.Lookup("validationLevel").StringValueOK()
		why := ""
		switch {
		case spec.Type == "view" || spec.Type == "timeseries":
			why = "it is a " + spec.Type
		case capped:
			why = "it is a capped collection, in which documents cannot be deleted"
		case spec.Options.Lookup("encryptedFields").Type == bson.TypeEmbeddedDocument:
			why = "it has encrypted fields"
		case level == "constraint":
			why = "MongoDB does not change a validator at level constraint; change the level to strict first"
		case guard.SettingsOf(spec).Equal(cutover.Fence()):
			why = "it has the validator of a cutover that the record does not have; remove it by hand"
		}
		if why != "" {
			return failure.Usagef("cannot exchange %s.%s: %s", db.Name(), spec.Name, why)
		}
	}
	return o.load.patience.Do(ctx, func() error {
		for name, id := range map[string]*bson.Binary{x.Name: x.OldID, x.New: x.NewID} {
			g, err := record.FindGuard(ctx, db, name, id)
			if err != nil {
				return err
			}
			if g != nil && !g.Stale(id) {
				return failure.Usagef("%s.%s is guarded against %s; remove the guard first, with bsonids guard --remove --write", db.Name(), name, g.Against())
			}
		}
		if err := renamable(ctx, db, x); err != nil {
			return err
		}
		missing, err := missingIndexes(ctx, db.Collection(x.Name), db.Collection(x.New))
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return failure.Usagef("%s.%s has indexes that %s does not have: %s; create them there first", db.Name(), x.Name, x.New, strings.Join(missing, ", "))
		}
		if !o.write {
			return nil
		}
		// No document has this _id. The updates change nothing, and the server rejects them if the
		// user lacks the privilege.
		for _, name := range []string{x.Name, x.New} {
			_, err := db.Collection(name).UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}},
				options.UpdateOne().SetBypassDocumentValidation(true))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// renamable returns a usage error if the server cannot rename the collections because they are
// sharded. MongoDB can from version 5.0.
func renamable(ctx context.Context, db *mongo.Database, x *record.Exchange) error {
	var hello struct {
		Msg     string `bson:"msg"`
		MaxWire int    `bson:"maxWireVersion"`
	}
	if err := db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return err
	}
	const version5 = 13
	if hello.Msg != "isdbgrid" || hello.MaxWire >= version5 {
		return nil
	}
	for _, name := range []string{x.Name, x.New} {
		n, err := db.Client().Database("config").Collection("collections").CountDocuments(ctx,
			bson.D{{Key: "_id", Value: db.Name() + "." + name}, {Key: "dropped", Value: bson.D{{Key: "$ne", Value: true}}}})
		if err != nil {
			return err
		}
		if n > 0 {
			return failure.Usagef("cannot exchange %s.%s: it is sharded, and MongoDB renames sharded collections from version 5.0", db.Name(), name)
		}
	}
	return nil
}

// missingIndexes returns the names of the indexes of old that fresh does not have.
func missingIndexes(ctx context.Context, old, fresh *mongo.Collection) ([]string, error) {
	list := func(coll *mongo.Collection) ([]bson.Raw, error) {
		cur, err := coll.Indexes().List(ctx)
		if err != nil {
			return nil, err
		}
		var all []bson.Raw
		err = cur.All(ctx, &all)
		return all, err
	}
	has, err := list(fresh)
	if err != nil {
		return nil, err
	}
	want, err := list(old)
	if err != nil {
		return nil, err
	}
	same := func(a, b bson.Raw) bool {
		return !slices.ContainsFunc([]string{"name", "key", "unique", "sparse", "partialFilterExpression", "expireAfterSeconds"}, func(key string) bool {
			v, w := a.Lookup(key), b.Lookup(key)
			return v.Type != w.Type || !bytes.Equal(v.Value, w.Value)
		})
	}
	var missing []string
	for _, i := range want {
		if !slices.ContainsFunc(has, func(h bson.Raw) bool { return same(i, h) }) {
			name, _ := i.Lookup("name").StringValueOK()
			missing = append(missing, name)
		}
	}
	return missing, nil
}

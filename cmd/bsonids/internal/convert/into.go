package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/time/rate"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// document counts the values of both kinds in doc, where they can be told apart.
func (v *Verified) document(doc bson.Raw, c Conversion) error {
	if c.SameSubtype() {
		return nil
	}
	first := ""
	err := walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if _, _, ok := c.wants(path, l); ok {
			v.Old++
			v.Fields.add(string(path.AppendField(nil)), 1)
			if path.Top() == "_id" {
				v.InID++
			}
			first = path.Dotted()
		} else if subtype, data, _, ok := l.Binary(); ok && subtype == c.To.Subtype && len(data) == 16 && c.selects(path) {
			v.New++
		}
		return nil
	})
	if err == nil && first != "" {
		id := doc.Lookup("_id")
		v.find(bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}, "not converted: %s", first)
	}
	return err
}

// maxPasses is how often a copy is held against its source before it is said that the source doesn't keep still.
const maxPasses = 5

// Copied is what a conversion into a new collection did, or would do.
type Copied struct {
	Read      int64         `json:"documentsRead"`
	Documents int64         `json:"documentsCopied"`
	Values    int64         `json:"valuesChanged"`
	Fields    Tally         `json:"fields"`
	Indexes   []string      `json:"indexes"`
	Conflicts []Skip        `json:"conflicts,omitempty"` // the converted _id stands in the new collection with another document; in Proof once that is complete
	Followed  int64         `json:"documentsFollowed"`   // changed in the source while they were copied, and brought up to date
	Passes    int           `json:"passes"`
	Verified  bool          `json:"verified"`
	Proof     Verified      `json:"proof"`
	Examples  [][2]bson.Raw `json:"-"` // before and after
}

// copier converts into another collection.
type copier struct {
	Options
	source, target *mongo.Collection
	tracker        *tracker
	limiter        *rate.Limiter
	mu             sync.Mutex
	res            Copied
}

// Into writes converted copies of all documents of source into target, with source's options and indexes, and holds the
// two against each other until they agree. Only then Copied.Verified is set. The source is not changed. Nobody else may
// write to the target until then.
func Into(ctx context.Context, source, target *mongo.Collection, o Options) (Copied, error) {
	limiter := o.setUp()
	c := &copier{Options: o, source: source, target: target, tracker: newTracker(), limiter: limiter, res: Copied{Fields: Tally{}, Indexes: []string{}}}
	indexes, create, err := c.describe(ctx)
	if err != nil {
		return c.res, err
	}
	if !o.Write {
		return c.res, c.copy(ctx)
	}
	state := o.State
	if state == nil {
		state = &StateFile{}
	}
	save := func() error {
		if o.State == nil {
			return nil
		}
		return o.State.Save()
	}
	if !state.Created {
		if err := c.mayCreate(ctx); err != nil {
			return c.res, err
		}
		// Written first: after a crash in between, the collection is known to be this conversion's.
		state.Created = true
		if err := save(); err != nil {
			return c.res, err
		}
	}
	if err := c.create(ctx, create); err != nil {
		return c.res, err
	}
	if !state.Copied {
		err := c.copy(ctx)
		if o.State != nil {
			if position, _ := c.tracker.checkpoint(func() int64 { return 0 }); position.Type != 0 {
				state.Position = newPosition(position)
			}
			state.Changed += c.res.Documents
			state.Copied = err == nil
			err = errors.Join(err, save())
		}
		if err != nil {
			return c.res, err
		}
	}
	if !state.Indexed && o.Part.First() {
		err := c.index(ctx, indexes)
		if mongo.IsDuplicateKeyError(err) {
			// What is unique in the source may have passed from one document to another since the first was copied.
			if _, err := c.pass(ctx, true); err != nil {
				return c.res, err
			}
			err = c.index(ctx, indexes)
		}
		if err != nil {
			return c.res, err
		}
		state.Indexed = true
		if err := save(); err != nil {
			return c.res, err
		}
	}
	if err := c.follow(ctx); err != nil {
		return c.res, err
	}
	c.res.Conflicts = nil // the proof has those that are left: what an earlier run copied may just have been out of date
	if c.res.Verified && o.State != nil {
		state.Done = true
		return c.res, save()
	}
	return c.res, nil
}

// describe returns the source's indexes, but for the one on _id, and what makes a collection with its options.
func (c *copier) describe(ctx context.Context) (indexes []bson.Raw, create bson.D, err error) {
	db := c.source.Database()
	cur, err := db.ListCollections(ctx, bson.D{{Key: "name", Value: c.source.Name()}})
	if err != nil {
		return nil, nil, err
	}
	var infos []struct {
		Type    string
		Options bson.D
	}
	if err := cur.All(ctx, &infos); err != nil {
		return nil, nil, err
	}
	if len(infos) == 0 {
		return nil, nil, fmt.Errorf("there is no collection %s.%s", db.Name(), c.source.Name())
	}
	if t := infos[0].Type; t != "" && t != "collection" {
		return nil, nil, fmt.Errorf("%s.%s is a %s, which cannot be copied", db.Name(), c.source.Name(), t)
	}
	create = bson.D{{Key: "create", Value: c.target.Name()}}
	for _, o := range infos[0].Options {
		switch o.Key {
		case "encryptedFields":
			return nil, nil, errors.New("a collection with queryable encryption cannot be copied")
		case "uuid", "autoIndexId":
		default:
			create = append(create, o)
		}
	}
	if indexes, err = listIndexes(ctx, c.source); err != nil {
		return nil, nil, err
	}
	for _, i := range indexes {
		name, _ := i.Lookup("name").StringValueOK()
		c.res.Indexes = append(c.res.Indexes, name)
	}
	return indexes, create, nil
}

// listIndexes returns the indexes of coll but for the one on _id.
func listIndexes(ctx context.Context, coll *mongo.Collection) ([]bson.Raw, error) {
	cur, err := coll.Indexes().List(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	var out []bson.Raw
	for cur.Next(ctx) {
		name, _ := cur.Current.Lookup("name").StringValueOK()
		_, clustered := cur.Current.Lookup("clustered").BooleanOK()
		if name != "_id_" && !clustered {
			out = append(out, slices.Clone(cur.Current))
		}
	}
	return out, cur.Err()
}

// mayCreate refuses a target that holds documents already, unless they are other parts'.
func (c *copier) mayCreate(ctx context.Context) error {
	cur, err := c.target.Find(ctx, bson.D{}, options.Find().SetLimit(100))
	if err != nil {
		return err
	}
	var there []bson.Raw
	if err := cur.All(ctx, &there); err != nil {
		return err
	}
	switch {
	case len(there) == 0:
		if c.Part.First() {
			return nil
		}
		names, err := c.target.Database().ListCollectionNames(ctx, bson.D{{Key: "name", Value: c.target.Name()}})
		if err == nil && len(names) == 0 {
			return fmt.Errorf("there is no collection %s yet: start part 1 first, which makes it", c.target.Name())
		}
		return err
	case c.Part.Whole():
		return fmt.Errorf("the collection %s has documents: give the name of a new one, or the --state of the run that filled it", c.target.Name())
	}
	// What differs from its source would be replaced, so another collection's documents must not be taken for other parts'.
	// A few may differ: their sources have changed since.
	copies, err := c.copies(ctx, there)
	if err == nil && 2*copies <= len(there) {
		err = fmt.Errorf("the collection %s has documents that are no converted copies of %s's: give the name of a new one", c.target.Name(), c.source.Name())
	}
	return err
}

// copies returns how many of the target's documents are converted copies of the source's.
func (c *copier) copies(ctx context.Context, docs []bson.Raw) (int, error) {
	sources := make(map[string]bson.Raw)
	err := c.withSources(ctx, docs, nil, func(doc bson.Raw, held []bson.Raw) {
		if len(held) > 0 {
			sources[key(doc.Lookup("_id"))] = held[0]
		}
	})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, doc := range docs {
		source, ok := sources[key(doc.Lookup("_id"))]
		if !ok {
			continue
		}
		want, _, err := c.Conversion.Rewrite(source, nil)
		if err != nil {
			return n, err
		}
		if bytes.Equal(want, doc) {
			n++
		}
	}
	return n, nil
}

// withSources calls f for each of the target's documents with those of the source that have its _id once they are
// converted.
func (c *copier) withSources(ctx context.Context, docs []bson.Raw, projection bson.D, f func(doc bson.Raw, held []bson.Raw)) error {
	of := make([][]bson.RawValue, len(docs))
	var ids []bson.RawValue
	for i, doc := range docs {
		var err error
		if of[i], err = c.Conversion.sources(doc.Lookup("_id")); err != nil {
			return err
		}
		ids = append(ids, of[i]...)
	}
	var found map[string]bson.Raw
	if len(ids) > 0 {
		var err error
		if found, err = fetch(ctx, c.source, ids, projection); err != nil {
			return err
		}
	}
	for i, doc := range docs {
		var held []bson.Raw
		for _, id := range of[i] {
			if s, ok := found[key(id)]; ok {
				held = append(held, s)
			}
		}
		f(doc, held)
	}
	return nil
}

func (c *copier) create(ctx context.Context, cmd bson.D) error {
	if !c.Part.First() {
		return nil
	}
	err := c.target.Database().RunCommand(ctx, cmd).Err()
	var ce mongo.CommandError
	if errors.As(err, &ce) && ce.Code == 48 { // NamespaceExists: an empty one, which may be sharded as it should be
		return nil
	}
	return err
}

// index makes the indexes; those that are there already stay.
func (c *copier) index(ctx context.Context, indexes []bson.Raw) error {
	if len(indexes) == 0 {
		return nil
	}
	// An index without a collation has the simple one, but it would get the collection's default.
	target, err := c.target.Database().ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: c.target.Name()}})
	if err != nil {
		return err
	}
	collated := false
	if len(target) > 0 {
		_, err := target[0].Options.LookupErr("collation")
		collated = err == nil
	}
	var specs bson.A
	for _, i := range indexes {
		elements, err := i.Elements()
		if err != nil {
			return err
		}
		var spec bson.D
		for _, e := range elements {
			switch e.Key() {
			case "v", "ns": // the version is the server's own matter, and ns, of old servers, names the source
			case "key":
				key, err := indexKey(e.Value().Document())
				if err != nil {
					return err
				}
				spec = append(spec, bson.E{Key: "key", Value: key})
			default:
				spec = append(spec, bson.E{Key: e.Key(), Value: e.Value()})
			}
		}
		if _, err := i.LookupErr("collation"); err != nil && collated {
			spec = append(spec, bson.E{Key: "collation", Value: bson.D{{Key: "locale", Value: "simple"}}})
		}
		specs = append(specs, spec)
	}
	// Options that servers before 3.4 kept and did nothing for would be errors.
	return c.target.Database().RunCommand(ctx, bson.D{{Key: "createIndexes", Value: c.target.Name()}, {Key: "indexes", Value: specs},
		{Key: "ignoreUnknownIndexOptions", Value: true}}).Err()
}

// indexKey returns the key of an index as servers take it today: those before 3.4 took everything but text and negative
// numbers, which is true and 0 for instance, for 1.
func indexKey(key bson.Raw) (bson.D, error) {
	elements, err := key.Elements()
	var d bson.D
	for _, e := range elements {
		v := e.Value()
		n, number := v.AsFloat64OK()
		text, isText := v.StringValueOK()
		if number && n != 0 || v.Type == bson.TypeDecimal128 || isText && text != "" {
			d = append(d, bson.E{Key: e.Key(), Value: v})
		} else {
			d = append(d, bson.E{Key: e.Key(), Value: int32(1)})
		}
	}
	return d, err
}

type copyBatch struct {
	number   int
	docs     []bson.Raw // converted
	read     int
	fields   Tally // values by field
	examples [][2]bson.Raw
}

// copy writes what the target doesn't have yet.
func (c *copier) copy(ctx context.Context) error {
	p := &pages{coll: c.source, size: int64(c.Batch)}
	if c.Write && c.State != nil {
		p.after = c.State.Position.raw()
		c.tracker.position = p.after
	}
	return inBatches(ctx, p, c.tracker, c.Workers, c.plan, c.process)
}

// plan makes the batch of a page.
func (c *copier) plan(number int, docs []bson.Raw) (copyBatch, error) {
	b := copyBatch{number: number, read: len(docs), fields: make(Tally)}
	for _, doc := range docs {
		if !c.Part.Has(doc.Lookup("_id")) {
			continue
		}
		fresh, values, err := c.Conversion.Rewrite(doc, b.fields)
		if err != nil {
			return b, fmt.Errorf("the document with _id %s: %w", doc.Lookup("_id"), err)
		}
		if values > 0 && (c.Options.Examples < 0 || len(b.examples) < c.Options.Examples) {
			b.examples = append(b.examples, [2]bson.Raw{doc, fresh})
		}
		b.docs = append(b.docs, fresh)
	}
	return b, nil
}

func (c *copier) process(waiting, ctx context.Context, b copyBatch) error {
	if c.Write && len(b.docs) > 0 {
		if err := turn(waiting, c.limiter, len(b.docs)); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		conflicts, err := c.insert(ctx, b.docs)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.res.Conflicts = append(c.res.Conflicts, conflicts[:min(len(conflicts), max(0, maxListed-len(c.res.Conflicts)))]...)
		c.mu.Unlock()
	}
	c.tracker.done(b.number)
	c.mu.Lock()
	c.res.Documents += int64(len(b.docs))
	c.res.Read += int64(b.read)
	for field, n := range b.fields {
		c.res.Fields.add(field, n)
		c.res.Values += n
	}
	for _, e := range b.examples {
		if c.Options.Examples < 0 || len(c.res.Examples) < c.Options.Examples {
			c.res.Examples = append(c.res.Examples, e)
		}
	}
	c.mu.Unlock()
	c.Progress(b.read)
	if !c.Write || c.State == nil {
		return nil
	}
	position, _ := c.tracker.checkpoint(func() int64 { return 0 })
	c.mu.Lock()
	defer c.mu.Unlock()
	if position.Type == 0 || c.State.Position != nil && bytes.Equal(c.State.Position.Value, position.Value) {
		return nil
	}
	c.State.Position = newPosition(position)
	return c.State.Save()
}

// insert writes docs. Those that stand in the target already, since an earlier run was stopped or the converted _id is
// another document's too, are left as they are; the latter are returned.
func (c *copier) insert(ctx context.Context, docs []bson.Raw) ([]Skip, error) {
	many := make([]any, len(docs))
	for i, d := range docs {
		many[i] = d
	}
	_, err := c.target.InsertMany(ctx, many, options.InsertMany().SetOrdered(false).SetBypassDocumentValidation(false))
	if err == nil {
		return nil, nil
	}
	var refused mongo.BulkWriteException
	if !errors.As(err, &refused) || refused.WriteConcernError != nil {
		return nil, err
	}
	var doubt []bson.Raw
	for _, we := range refused.WriteErrors {
		if server.Concerns(we.Code) {
			return nil, err
		}
		if !mongo.IsDuplicateKeyError(we) {
			return nil, fmt.Errorf("the document with _id %s: %s", docs[we.Index].Lookup("_id"), reason(we.WriteError))
		}
		doubt = append(doubt, docs[we.Index])
	}
	held, err := c.held(ctx, doubt)
	if err != nil {
		return nil, err
	}
	var conflicts []Skip
	for _, d := range doubt {
		if !bytes.Equal(held[key(d.Lookup("_id"))], d) {
			conflicts = append(conflicts, Skip{d.Lookup("_id"), "the new collection has another document with this _id or another unique key"})
		}
	}
	return conflicts, nil
}

func (c *copier) held(ctx context.Context, docs []bson.Raw) (map[string]bson.Raw, error) {
	ids := make([]bson.RawValue, len(docs))
	for i, d := range docs {
		ids[i] = d.Lookup("_id")
	}
	return fetch(ctx, c.target, ids, nil)
}

// follow compares the two collections and brings the target up to date with what changed in the source meanwhile, until
// a pass finds nothing to do.
func (c *copier) follow(ctx context.Context) error {
	for c.res.Passes = 1; c.res.Passes <= maxPasses; c.res.Passes++ {
		proof, err := c.pass(ctx, true)
		c.res.Proof = proof.Verified
		if err != nil {
			return err
		}
		if proof.repaired == 0 {
			c.res.Verified = proof.Holds(false)
			return nil
		}
		c.res.Followed += proof.repaired
	}
	c.res.Passes = maxPasses
	return nil
}

type comparison struct {
	Verified
	repaired int64
}

// pass holds every document of the source against its copy and, where repair is set, brings the copy up to date; then it
// counts.
func (c *copier) pass(ctx context.Context, repair bool) (comparison, error) {
	res := comparison{Verified: Verified{Fields: Tally{}}}
	var mine int64
	p := &pages{coll: c.source, size: int64(c.Batch)}
	for {
		docs, err := p.next(ctx)
		if err != nil {
			return res, err
		}
		if len(docs) == 0 {
			break
		}
		var want []bson.Raw
		for _, doc := range docs {
			if !c.Part.Has(doc.Lookup("_id")) {
				continue
			}
			fresh, _, err := c.Conversion.Rewrite(doc, nil)
			if err != nil {
				return res, err
			}
			want = append(want, fresh)
		}
		mine += int64(len(want))
		res.Read += int64(len(docs))
		c.Progress(len(docs))
		if err := c.compare(ctx, want, &res, repair); err != nil {
			return res, err
		}
	}
	if !c.Part.Whole() {
		return res, nil // how many there are in all is for bsonids verify, when every part is done
	}
	n, err := c.target.CountDocuments(ctx, bson.D{})
	if err != nil {
		return res, err
	}
	if n != mine {
		return res, c.extras(ctx, &res)
	}
	return res, nil
}

func (c *copier) compare(ctx context.Context, want []bson.Raw, res *comparison, repair bool) error {
	if len(want) == 0 {
		return nil
	}
	held, err := c.held(ctx, want)
	if err != nil {
		return err
	}
	var missing []bson.Raw
	for _, doc := range want {
		id := doc.Lookup("_id")
		got, ok := held[key(id)]
		switch {
		case ok && bytes.Equal(got, doc):
			res.Proven++
			if err := res.document(got, c.Conversion); err != nil {
				return err
			}
		case !repair && !ok:
			res.Missing++
			res.find(id, "in the source and not in the copy")
		case !repair:
			res.Wrong++
			res.find(id, "the copy differs from the converted source")
		case !ok:
			missing = append(missing, doc)
		case bytes.Equal(got, filledIn(doc, got)):
			res.Wrong++
			res.find(id, "it has an empty timestamp at its top, which a server fills in when a document is inserted")
		default:
			conflict, err := c.isConflict(ctx, doc)
			if err != nil {
				return err
			}
			if conflict {
				res.Wrong++
				res.find(id, "two documents of the source have this _id after the conversion")
				continue
			}
			// On what was read, so that a copy that changes at this moment is looked at again.
			_, err = c.target.ReplaceOne(ctx, replaced(got, maxUpdate-len(doc)), doc)
			if mongo.IsDuplicateKeyError(err) {
				// The copy that has the value may be brought up to date after this one; then the next pass succeeds.
				res.Wrong++
				res.find(id, "the converted source has a value that another copy has too, and an index is unique")
				continue
			}
			if err != nil {
				return err
			}
			res.repaired++
		}
	}
	if len(missing) == 0 {
		return nil
	}
	conflicts, err := c.insert(ctx, missing)
	for _, s := range conflicts {
		res.Wrong++
		res.find(s.ID, "%s", s.Reason)
	}
	res.repaired += int64(len(missing) - len(conflicts))
	return err
}

// filledIn returns doc with the timestamps of got in the place of its empty ones, where a server fills them in: at the top of
// a document, but not as its _id.
func filledIn(doc, got bson.Raw) bson.Raw {
	elements, err := doc.Elements()
	if err != nil || len(doc) != len(got) {
		return doc
	}
	out := slices.Clone(doc)
	at := 4
	for _, e := range elements {
		at += len(e)
		if t, i, ok := e.Value().TimestampOK(); ok && t == 0 && i == 0 && e.Key() != "_id" {
			copy(out[at-8:at], got[at-8:at])
		}
	}
	return out
}

// isConflict reports whether two documents of the source have the _id after the conversion: one that has it already, and
// one whose _id becomes it.
func (c *copier) isConflict(ctx context.Context, converted bson.Raw) (bool, error) {
	two := false
	err := c.withSources(ctx, []bson.Raw{converted}, bson.D{{Key: "_id", Value: 1}}, func(_ bson.Raw, held []bson.Raw) { two = len(held) > 1 })
	return two, err
}

// replaced returns a filter for doc with every top-level value as it was read, as far as a query can name them and there is
// room for their octets.
func replaced(doc bson.Raw, room int) bson.D {
	id := doc.Lookup("_id")
	filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}}
	room -= len(id.Value) + 64
	elements, err := doc.Elements()
	if err != nil {
		return filter
	}
	for _, e := range elements {
		switch v := e.Value(); v.Type {
		case bson.TypeString, bson.TypeInt32, bson.TypeInt64, bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeEmbeddedDocument:
			// Beside the element itself, there is a document with $eq around the value.
			if k := e.Key(); k != "_id" && k != "" && k[0] != '$' && !bytes.ContainsRune([]byte(k), '.') && len(e)+32 < room {
				room -= len(e) + 32
				filter = append(filter, bson.E{Key: k, Value: bson.D{{Key: "$eq", Value: v}}})
			}
		}
	}
	return filter
}

// extras finds the documents of the target that no document of the source becomes. They are never deleted: whether the
// source's was deleted meanwhile, or somebody wrote to the target, nothing here can know.
func (c *copier) extras(ctx context.Context, res *comparison) error {
	p := &pages{coll: c.target, size: int64(c.Batch), projection: bson.D{{Key: "_id", Value: 1}}}
	for {
		docs, err := p.next(ctx)
		if err != nil || len(docs) == 0 {
			return err
		}
		err = c.withSources(ctx, docs, bson.D{{Key: "_id", Value: 1}}, func(doc bson.Raw, held []bson.Raw) {
			if len(held) == 0 {
				res.Extra++
				res.find(doc.Lookup("_id"), "in the copy and not in the source: deleted there meanwhile, or written here by another program")
			}
		})
		if err != nil {
			return err
		}
	}
}

// VerifyInto proves that target holds the converted documents of source, octet for octet, and no others.
func VerifyInto(ctx context.Context, source, target *mongo.Collection, conv Conversion, progress func(int)) (Verified, error) {
	c := &copier{Options: Options{Conversion: conv, Progress: progress, Batch: batchSize}, source: source, target: target}
	res, err := c.pass(ctx, false)
	return res.Verified, err
}

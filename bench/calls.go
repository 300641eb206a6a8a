package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/cursors"
	"github.com/bsonids/bsonids/uuidgen"
)

// A Call is one call of a client, made by one implementation. Calls of the same Row are adjacent.
//
// Prepare, if there is one, is called before it is measured. Run makes the call, which inserts, updates or reads so many Documents, and returns the last one that it read, or nil.
// Check returns an error if that is not the one that is expected. A row of reads whose implementation has no other way
// than that of another row is the same call as there: SameAs is the name of that row then, and there is no Run.
type Call struct {
	Row, Column string
	SameAs      string
	Documents   int
	Prepare     func(context.Context) error
	Run         func(context.Context) (last any, err error)
	Check       func(last any) error
}

// CallColumns are the implementations of a Call: the driver with bson.Binary in the documents, the codec for UUIDs that
// programs write by hand, this module, this module with package autoid and UUIDs of version 7, and the floor: the same
// call with documents that are a bson.Raw.
var CallColumns = []string{"driver", "usual", "bsonids", "autoid", "floor"}

// A callForm is how an implementation has the documents.
type callForm int

const (
	formBinary  callForm = iota // with bson.Binary
	formUUID                    // with uuid.UUID
	formWithout                 // with uuid.UUID, and without _id
	formRaw                     // bson.Raw
	callForms
)

const (
	callDocuments = 1000   // of each kind, which is the size of a batch of inserts
	foundFirst    = 101    // in the first batch of a server
	found         = 10_000 // by a find of all
	foundJoined   = 2000   // by an aggregate
)

// A callKind is a kind of document.
type callKind struct {
	name        string
	docs        [callForms][]any
	ids         [callForms][]any
	raw, joined []bson.Raw // as the driver encodes the documents with bson.Binary
	read        [callForms]callReads
	readJoined  [callForms]callReads
}

// A callReads has the ways to read documents of one type. Each returns the last document, or a pointer to it.
type callReads struct {
	one        func(*mongo.SingleResult) (any, error)
	all        func(context.Context, *mongo.Cursor) (n int, last any, err error)
	next       func(context.Context, *mongo.Cursor) (n int, last any, err error)
	cursorsAll func(context.Context, *mongo.Cursor) (n int, last any, err error)
}

func readsOf[T any]() callReads {
	last := func(all []T, err error) (int, any, error) {
		if len(all) == 0 {
			return 0, nil, err
		}
		return len(all), &all[len(all)-1], err
	}
	return callReads{
		one: func(res *mongo.SingleResult) (any, error) {
			v := new(T)
			return v, res.Decode(v)
		},
		all: func(ctx context.Context, c *mongo.Cursor) (int, any, error) {
			var all []T
			err := c.All(ctx, &all)
			return last(all, err)
		},
		next: func(ctx context.Context, c *mongo.Cursor) (n int, last any, err error) {
			defer c.Close(ctx)
			for ; c.Next(ctx); n++ {
				v := new(T)
				if err := c.Decode(v); err != nil {
					return n, nil, err
				}
				last = v
			}
			return n, last, c.Err()
		},
		cursorsAll: func(ctx context.Context, c *mongo.Cursor) (int, any, error) { return last(cursors.All[T](ctx, c)) },
	}
}

// readsRaw are the reads of the floor. No way to read is cheaper than a copy of Cursor.Current.
func readsRaw() callReads {
	r := readsOf[bson.Raw]()
	r.cursorsAll = func(ctx context.Context, c *mongo.Cursor) (int, any, error) {
		defer c.Close(ctx)
		var all []bson.Raw
		for c.Next(ctx) {
			all = append(all, bytes.Clone(c.Current))
		}
		if len(all) == 0 {
			return 0, nil, c.Err()
		}
		return len(all), &all[len(all)-1], c.Err()
	}
	return r
}

// identified is a document of four identifiers.
type identified[T any] struct {
	ID T `bson:"_id"`
	A  T `bson:"a"`
	B  T `bson:"b"`
	C  T `bson:"c"`
}

func newIdentified[T any](id func() T) identified[T] { return identified[T]{id(), id(), id(), id()} }

// flat30 is a document of thirty fields.
type flat30[T any] struct {
	ID                     T `bson:"_id"`
	A, B, C, D, E, F, G, H string
	I, J, K, L, M, N, O, P int32
	Q, R, S, T, U          int64
	V, W, X, Y             float64
	Z, AA, AB, AC          bool
}

func newFlat30[T any](i int, id T) flat30[T] {
	return flat30[T]{
		ID: id,
		A:  "Lorem ipsum", B: "dolor sit amet", C: "consectetur", D: "adipiscing", E: "elit", F: "sed", G: "do", H: "eiusmod",
		I: int32(i), J: 2, K: 3, L: 4, M: 5, N: 6, O: 7, P: 8, Q: 1 << 40, R: 1 << 41, S: 1 << 42, T: 1 << 43, U: 1 << 44,
		V: 1.5, W: 2.5, X: 3.5, Y: 4.5, Z: true, AA: true, AB: true,
	}
}

// joinedTo is a document with those that $lookup adds to it.
type joinedTo[Doc, T any] struct {
	Doc    Doc             `bson:",inline"`
	Joined []identified[T] `bson:"joined"`
}

// callIDs returns a source of the identifiers of document i, which are the same in every process.
func callIDs[T any](i int, as func(uuid.UUID) T) func() T {
	n := 0
	return func() T {
		n++
		return as(uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%d %d", i, n)))
	}
}

func asUUID(u uuid.UUID) uuid.UUID     { return u }
func asBinary(u uuid.UUID) bson.Binary { return bson.Binary{Subtype: bson.TypeBinaryUUID, Data: u[:]} }

// newKind returns a kind of document. A struct without its _id is one with the zero UUID.
func newKind[B, U any](name string, binary func(i int, id func() bson.Binary) B, native, without func(i int, id func() uuid.UUID) U) *callKind {
	k := &callKind{name: name}
	for i := range callDocuments {
		b, j := callIDs(i, asBinary), newIdentified(callIDs(-1-i, asBinary))
		doc := binary(i, b)
		k.docs[formBinary] = append(k.docs[formBinary], doc)
		k.docs[formUUID] = append(k.docs[formUUID], native(i, callIDs(i, asUUID)))
		k.docs[formWithout] = append(k.docs[formWithout], without(i, callIDs(i, asUUID)))
		k.raw = append(k.raw, encoded(doc))
		k.docs[formRaw] = append(k.docs[formRaw], k.raw[i])
		id := callIDs(i, asUUID)()
		k.ids[formBinary] = append(k.ids[formBinary], asBinary(id))
		k.ids[formUUID] = append(k.ids[formUUID], id)
		var m bson.D
		if err := bson.Unmarshal(k.raw[i], &m); err != nil {
			panic(err)
		}
		k.joined = append(k.joined, encoded(append(m, bson.E{Key: "joined", Value: []any{j, j}})))
	}
	k.read = [callForms]callReads{readsOf[B](), readsOf[U](), readsOf[U](), readsRaw()}
	k.readJoined = [callForms]callReads{
		readsOf[joinedTo[B, bson.Binary]](), readsOf[joinedTo[U, uuid.UUID]](), readsOf[joinedTo[U, uuid.UUID]](), readsRaw(),
	}
	return k
}

// callKinds returns the kinds of documents, the same in every process.
func callKinds() []*callKind {
	m := newKind("bson.M",
		func(_ int, id func() bson.Binary) bson.M { return purchaseM(id) },
		func(_ int, id func() uuid.UUID) bson.M { return purchaseM(id) },
		func(_ int, id func() uuid.UUID) bson.M {
			m := purchaseM(id)
			delete(m, "_id")
			return m
		})
	m.readJoined = m.read // a map has all elements
	return []*callKind{
		newKind("order",
			func(_ int, id func() bson.Binary) purchaseOf[bson.Binary] { return newPurchaseOf(id) },
			func(_ int, id func() uuid.UUID) purchase { return newPurchaseOf(id) },
			func(_ int, id func() uuid.UUID) purchase {
				p := newPurchaseOf(id)
				p.ID = uuid.Nil
				return p
			}),
		newKind("four",
			func(_ int, id func() bson.Binary) identified[bson.Binary] { return newIdentified(id) },
			func(_ int, id func() uuid.UUID) identified[uuid.UUID] { return newIdentified(id) },
			func(_ int, id func() uuid.UUID) identified[uuid.UUID] {
				v := newIdentified(id)
				v.ID = uuid.Nil
				return v
			}),
		newKind("flat",
			func(i int, id func() bson.Binary) flat30[bson.Binary] { return newFlat30(i, id()) },
			func(i int, id func() uuid.UUID) flat30[uuid.UUID] { return newFlat30(i, id()) },
			func(i int, _ func() uuid.UUID) flat30[uuid.UUID] { return newFlat30(i, uuid.Nil) }),
		m,
	}
}

// purchaseM is an order as a map.
func purchaseM[T any](id func() T) bson.M {
	p := newPurchaseOf(id)
	lines := bson.A{}
	for _, l := range p.Lines {
		lines = append(lines, bson.M{"article": l.Article, "quantity": l.Quantity, "price": l.Price})
	}
	return bson.M{
		"_id": p.ID, "customer": p.Customer, "number": p.Number, "status": p.Status, "created": p.Created, "updated": p.Updated,
		"paid": p.Paid, "total": p.Total, "version": p.Version,
		"address": bson.M{"street": p.Address.Street, "city": p.Address.City, "country": p.Address.Country},
		"lines":   lines, "tags": bson.A{p.Tags[0], p.Tags[1]},
	}
}

// A callColumn is an implementation, with a client of its own.
type callColumn struct {
	name   string
	form   callForm
	client *mongo.Client
}

// callColumnsOf connects the implementations to the server at uri.
func callColumnsOf(uri string) ([]callColumn, func(), error) {
	connect := func(reg *bson.Registry) (*mongo.Client, error) {
		opts := options.Client().ApplyURI(uri)
		if reg != nil {
			opts.SetRegistry(reg)
		}
		return mongo.Connect(opts)
	}
	driver, err1 := connect(nil)
	usual, err2 := connect(usualCodec())
	separator := "?"
	if strings.Contains(uri, "?") {
		separator = "&"
	}
	ours, err3 := clientopt.Connect(uri + separator + "uuidRepresentation=standard")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, err
	}
	columns := []callColumn{
		{"driver", formBinary, driver}, {"usual", formUUID, usual}, {"bsonids", formUUID, ours}, {"autoid", formWithout, ours},
		{"floor", formRaw, driver},
	}
	return columns, func() {
		for _, client := range []*mongo.Client{driver, usual, ours} {
			_ = client.Disconnect(context.Background())
		}
	}, nil
}

// An inserter is a mongo.Collection or an autoid.Collection.
type inserter interface {
	InsertOne(context.Context, any, ...options.Lister[options.InsertOneOptions]) (*mongo.InsertOneResult, error)
	InsertMany(context.Context, any, ...options.Lister[options.InsertManyOptions]) (*mongo.InsertManyResult, error)
	BulkWrite(context.Context, []mongo.WriteModel, ...options.Lister[options.BulkWriteOptions]) (*mongo.BulkWriteResult, error)
}

// The databases of a call server. The _ids in the second one are UUIDs of version 7.
const (
	callDatabase   = "bench"
	autoidDatabase = "bench_autoid"
)

// inserter returns the collection of the column for inserts.
func (c callColumn) inserter(collection string) inserter {
	if c.form != formWithout {
		return c.client.Database(callDatabase).Collection(collection)
	}
	return withAutoID(c.client.Database(autoidDatabase).Collection(collection))
}

func withAutoID(coll *mongo.Collection) *autoid.Collection {
	ids := autoid.SourceFunc(func() (any, error) { return uuidgen.NewV7() })
	return autoid.Wrap(coll, ids, autoid.WithZeroIDAsMissing())
}

// Calls returns the calls to a server of [ServeCalls] at uri, and what disconnects their clients.
func Calls(uri string) ([]Call, func(), error) {
	columns, disconnect, err := callColumnsOf(uri)
	if err != nil {
		return nil, nil, err
	}
	kinds := callKinds()
	var calls []Call
	for _, row := range []func(*callKind, callColumn) *Call{
		insertOneCall, insertManyCall, bulkWriteCall, updateOneCall, findOneCall, findCursorsAllCall, findAllCall, findNextCall, lookupCall,
	} {
		for _, k := range kinds {
			for _, c := range columns {
				if call := row(k, c); call != nil {
					call.Row, call.Column = call.Row+", "+k.name, c.name
					if call.SameAs != "" {
						call.SameAs += ", " + k.name
					}
					calls = append(calls, *call)
				}
			}
		}
	}
	return calls, disconnect, nil
}

// nothingRead is the Check of a call that reads nothing. The server checks what it receives.
func nothingRead(any) error { return nil }

func insertOneCall(k *callKind, c callColumn) *Call {
	coll, i := c.inserter(k.name), 0
	return &Call{Row: "InsertOne", Documents: 1, Check: nothingRead, Run: func(ctx context.Context) (any, error) {
		i++
		res, err := coll.InsertOne(ctx, k.docs[c.form][i%callDocuments])
		if err == nil && res.InsertedID == nil {
			err = errors.New("no InsertedID")
		}
		return nil, err
	}}
}

func insertManyCall(k *callKind, c callColumn) *Call {
	coll := c.inserter(k.name)
	return &Call{Row: "InsertMany of 1,000", Documents: callDocuments, Check: nothingRead, Run: func(ctx context.Context) (any, error) {
		res, err := coll.InsertMany(ctx, k.docs[c.form])
		if err == nil && len(res.InsertedIDs) != callDocuments {
			err = fmt.Errorf("%d InsertedIDs", len(res.InsertedIDs))
		}
		return nil, err
	}}
}

// bulkWriteCall inserts one half and updates the other.
func bulkWriteCall(k *callKind, c callColumn) *Call {
	coll := c.inserter(k.name)
	models := make([]mongo.WriteModel, callDocuments)
	for i, doc := range k.docs[c.form] {
		models[i] = mongo.NewInsertOneModel().SetDocument(doc)
		if i >= callDocuments/2 {
			filter, update := k.update(updateForm(c.form), i)
			models[i] = mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(update)
		}
	}
	return &Call{Row: "BulkWrite of 1,000", Documents: callDocuments, Check: nothingRead, Run: func(ctx context.Context) (any, error) {
		res, err := coll.BulkWrite(ctx, models)
		if err == nil && res.InsertedCount != callDocuments/2 {
			err = fmt.Errorf("%d inserted", res.InsertedCount)
		}
		return nil, err
	}}
}

// updateForm is the form of documents in updates, where autoid has no part.
func updateForm(f callForm) callForm {
	if f == formWithout {
		return formUUID
	}
	return f
}

// update returns the filter and the update of document i.
func (k *callKind) update(f callForm, i int) (filter, update any) {
	if f == formRaw {
		filter, update = k.update(formBinary, i)
		return encoded(filter), encoded(update)
	}
	filter = bson.D{{Key: "_id", Value: k.ids[f][i]}}
	return filter, bson.D{{Key: "$set", Value: bson.D{{Key: "doc", Value: k.docs[f][i]}}}}
}

func updateOneCall(k *callKind, c callColumn) *Call {
	if c.form == formWithout {
		return nil
	}
	coll, i := c.client.Database(callDatabase).Collection(k.name), 0
	var filters, updates []any
	for i := range callDocuments {
		filter, update := k.update(c.form, i)
		filters, updates = append(filters, filter), append(updates, update)
	}
	return &Call{Row: "UpdateOne by `_id`", Documents: 1, Check: nothingRead, Run: func(ctx context.Context) (any, error) {
		i = (i + 1) % callDocuments
		_, err := coll.UpdateOne(ctx, filters[i], updates[i])
		return nil, err
	}}
}

func findOneCall(k *callKind, c callColumn) *Call {
	if c.form == formWithout {
		return nil
	}
	coll, i := c.client.Database(callDatabase).Collection(k.name), 0
	var filters []any
	for i := range callDocuments {
		filter, _ := k.update(c.form, i)
		filters = append(filters, filter)
	}
	return &Call{
		Row: "FindOne + Decode", Documents: 1, Check: func(last any) error { return sameDocument(last, k.raw[i]) },
		Run: func(ctx context.Context) (any, error) {
			i = (i + 1) % callDocuments
			return k.read[c.form].one(coll.FindOne(ctx, filters[i]))
		}}
}

// findCall reads all documents with read.
func findCall(k *callKind, c callColumn, row string, read func(context.Context, *mongo.Cursor) (int, any, error)) *Call {
	if c.form == formWithout {
		return nil
	}
	coll := c.client.Database(callDatabase).Collection(k.name)
	last := k.raw[(found-1)%callDocuments]
	return &Call{Row: row, Documents: found, Check: func(got any) error { return sameDocument(got, last) }, Run: func(ctx context.Context) (any, error) {
		cursor, err := coll.Find(ctx, bson.D{})
		if err != nil {
			return nil, err
		}
		n, got, err := read(ctx, cursor)
		if err == nil && n != found {
			err = fmt.Errorf("%d documents", n)
		}
		return got, err
	}}
}

func findCursorsAllCall(k *callKind, c callColumn) *Call {
	if c.name == "driver" || c.name == "usual" { // these have Cursor.All
		return &Call{Row: "Find + cursors.All", SameAs: "Find + Cursor.All"}
	}
	return findCall(k, c, "Find + cursors.All", k.read[c.form].cursorsAll)
}

func findAllCall(k *callKind, c callColumn) *Call {
	return findCall(k, c, "Find + Cursor.All", k.read[c.form].all)
}

func findNextCall(k *callKind, c callColumn) *Call {
	return findCall(k, c, "Find + Next, Decode", k.read[c.form].next)
}

func lookupCall(k *callKind, c callColumn) *Call {
	if c.form == formWithout {
		return nil
	}
	coll := c.client.Database(callDatabase).Collection(k.name)
	pipeline := mongo.Pipeline{{{Key: "$lookup", Value: bson.D{
		{Key: "from", Value: "others"}, {Key: "localField", Value: "customer"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "joined"},
	}}}}
	last := k.joined[(foundJoined-1)%callDocuments]
	return &Call{
		Row: "Aggregate with $lookup + Cursor.All", Documents: foundJoined, Check: func(got any) error { return sameDocument(got, last) },
		Run: func(ctx context.Context) (any, error) {
			cursor, err := coll.Aggregate(ctx, pipeline)
			if err != nil {
				return nil, err
			}
			n, got, err := k.readJoined[c.form].all(ctx, cursor)
			if err == nil && n != foundJoined {
				err = fmt.Errorf("%d documents", n)
			}
			return got, err
		}}
}

// sameDocument returns an error if got, which has been read, is not want.
func sameDocument(got any, want bson.Raw) error {
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(usualCodec())
	if err := enc.Encode(got); err != nil {
		return err
	}
	if !slices.Equal(canonical(buf.Bytes(), ""), canonical(want, "")) {
		return fmt.Errorf("got %v, want %v", bson.Raw(buf.Bytes()), want)
	}
	return nil
}

// canonical returns the elements of doc but for those of the key without, sorted by their keys at every level, since a
// map has no order.
func canonical(doc bson.Raw, without string) []string {
	elements, err := doc.Elements()
	if err != nil {
		return []string{err.Error()}
	}
	var sorted []string
	for _, e := range elements {
		v := e.Value()
		switch {
		case e.Key() == without:
		case v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray:
			sorted = append(sorted, fmt.Sprintf("%s: %v %q", e.Key(), v.Type, canonical(v.Value, "")))
		default:
			sorted = append(sorted, fmt.Sprintf("%s: %v %q", e.Key(), v.Type, v.Value))
		}
	}
	slices.Sort(sorted)
	return sorted
}

// OrderCalls returns the calls that insert count orders, in batches of 1,000, and read them, on the server of a MongoDB at
// uri, in a database that is dropped by the function that disconnects the clients. An insert drops the collection first, and
// the driver and the usual codec read with Cursor.All, the others with package cursors.
func OrderCalls(uri string, count int) ([]Call, func(), error) {
	columns, disconnect, err := callColumnsOf(uri)
	if err != nil {
		return nil, nil, err
	}
	db := "bsonids_bench_" + bson.NewObjectID().Hex()
	docs := make([][]any, len(columns))
	for i := range count {
		binary, native := newPurchaseOf(callIDs(i, asBinary)), newPurchaseOf(callIDs(i, asUUID))
		without := native
		without.ID = uuid.Nil
		for c, column := range columns {
			docs[c] = append(docs[c], [callForms]any{binary, native, without, encoded(binary)}[column.form])
		}
	}
	reads := [callForms]callReads{readsOf[purchaseOf[bson.Binary]](), readsOf[purchase](), readsOf[purchase](), readsRaw()}
	inserts, all := make([]Call, len(columns)), make([]Call, len(columns))
	for i, c := range columns {
		plain := c.client.Database(db).Collection("orders_" + c.name)
		coll := inserter(plain)
		if c.form == formWithout {
			coll = withAutoID(plain)
		}
		drop := func(ctx context.Context) error { return plain.Drop(ctx) }
		inserts[i] = Call{Row: "InsertMany of 1,000", Column: c.name, Documents: count, Prepare: drop, Check: nothingRead, Run: func(ctx context.Context) (any, error) {
			for batch := range slices.Chunk(docs[i], callDocuments) {
				if _, err := coll.InsertMany(ctx, batch); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}}
		read := reads[c.form].all
		if c.name != "driver" && c.name != "usual" {
			read = reads[c.form].cursorsAll
		}
		all[i] = Call{Row: "Find, all", Column: c.name, Documents: count, Check: nothingRead, Run: func(ctx context.Context) (any, error) {
			cursor, err := plain.Find(ctx, bson.D{})
			if err != nil {
				return nil, err
			}
			n, last, err := read(ctx, cursor)
			if err == nil && n != count {
				err = fmt.Errorf("%d documents", n)
			}
			return last, err
		}}
	}
	return append(inserts, all...), func() {
		_ = columns[0].client.Database(db).Drop(context.Background())
		disconnect()
	}, nil
}

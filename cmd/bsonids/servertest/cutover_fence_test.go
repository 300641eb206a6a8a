package servertest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// atFence counts the documents of the collections that a cutover reads while the server refuses writes,
// up to the first rename. before is called before the fence is set, and after when it is.
type atFence struct {
	mu            sync.Mutex
	fences, reads int
	renamed       bool
}

func (c *cut) atFence(f *atFence, before, after func()) target {
	return startProxy(c, host(c, c.s), func(r request, pass func() []byte) []byte {
		name := r.name()
		if _, err := r.command.LookupErr("validator", "$nor"); name == "collMod" && err != nil {
			name = "" // it asks whether the server knows the command
		}
		switch name {
		case "collMod":
			if f.fences == 0 && before != nil {
				before()
			}
			answer := pass()
			f.mu.Lock()
			f.fences++
			f.mu.Unlock()
			if f.fences == 2*len(c.names) && after != nil {
				after()
			}
			return answer
		case "renameCollection":
			f.mu.Lock()
			f.renamed = true
			f.mu.Unlock()
		case "find", "aggregate", "count":
			answer := pass()
			f.mu.Lock()
			defer f.mu.Unlock()
			coll, ok := r.command.Index(0).Value().StringValueOK()
			if reply, read := parseRequest(answer); read && ok && !strings.HasPrefix(coll, "bsonids.") && f.fences > 0 && !f.renamed {
				batch, _ := reply.command.Lookup("cursor", "firstBatch").ArrayOK()
				values, _ := batch.Values()
				f.reads += max(1, len(values))
			}
			return answer
		}
		return pass()
	})
}

// The documents that are read while the server refuses writes depend on what has changed, and not on the
// number of documents. What other programs write to the copy is found too, before and behind the fence.
func TestCutoverReadsBehindFence(t *testing.T) {
	var reads []int
	for _, documents := range []int{60, 300} {
		c := startCut(t, documents, "a")
		c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
		old, fresh := c.db.Collection("a"), c.db.Collection("a_new")
		by := func(i int, r uuidrep.Representation) bson.D { return bson.D{{Key: "_id", Value: in(cutID(i), r)}} }
		set := func(coll *mongo.Collection, filter bson.D, n int) error {
			_, err := coll.UpdateOne(t.Context(), filter, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(n)}}}}, options.UpdateOne().SetBypassDocumentValidation(true))
			return err
		}
		change := func(i int) func() {
			return func() {
				_, err1 := old.DeleteOne(t.Context(), by(i, uuidrep.JavaLegacy))
				err2 := set(old, by(i+1, uuidrep.JavaLegacy), 5)
				_, err3 := old.InsertOne(t.Context(), cutDoc(5000+i, 1), options.InsertOne().SetBypassDocumentValidation(true))
				err4 := errors.Join(set(old, by(i+2, uuidrep.JavaLegacy), 9), set(old, by(i+2, uuidrep.JavaLegacy), 0)) // and back
				err5 := set(fresh, by(i+3, uuidrep.Standard), 77)
				_, err6 := fresh.DeleteOne(t.Context(), by(i+4, uuidrep.Standard))
				// One that the conversion could make, and one that it could not.
				_, err7 := fresh.InsertOne(t.Context(), append(by(6000+i, uuidrep.Standard), bson.E{Key: "n", Value: int32(3)}), options.InsertOne().SetBypassDocumentValidation(true))
				_, err8 := fresh.InsertOne(t.Context(), append(by(7000+i, uuidrep.JavaLegacy), bson.E{Key: "n", Value: int32(3)}), options.InsertOne().SetBypassDocumentValidation(true))
				if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
					t.Error(err)
				}
			}
		}
		var f atFence
		r := c.cutover(c.atFence(&f, change(10), change(20)), failure.ExitOK, "--write")
		if r.State != "switched" || r.ComparedAllBehindFence != "" || r.Collections[0].Documents != int64(documents) {
			t.Errorf("%+v", r)
		}
		if r.RefusedMilliseconds < r.Collections[0].GapMilliseconds {
			t.Errorf("writes were refused for %d ms, and the gap was %d ms", r.RefusedMilliseconds, r.Collections[0].GapMilliseconds)
		}
		equal(t, all(t, c.db.Collection("a")), converted(t, all(t, c.db.Collection("a_before_cutover"))))
		t.Logf("%d documents: %d reads behind the fence, %d compared", documents, f.reads, r.Collections[0].DocumentsComparedBehindFence)
		reads = append(reads, f.reads)
	}
	// 16 changes, each of which may be read in both collections, and again because it was repaired.
	const changes = 16
	if reads[0] < changes || reads[1] > 6*changes {
		t.Errorf("%d and %d documents were read", reads[0], reads[1])
	}
}

// Two documents that would become one are found before any write is refused. Without one of them, the
// cutover is carried out.
func TestCutoverSameID(t *testing.T) {
	c := startCut(t, 1100, "a") // the two are not read at once
	old := c.db.Collection("a")
	settings := c.settingsOf("a")
	for _, twin := range twins() {
		insert(t, old, []any{twin})
		var f atFence
		r := command(t, c.atFence(&f, nil, nil), c.line("cutover", "--write")...).want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, "two documents have the same _id after the conversion") || f.fences > 0 {
			t.Errorf("%d fences: %s", f.fences, r.stderr)
		}
		c.wantSettings(settings, "a", "a_new")
		if _, err := old.DeleteOne(t.Context(), twin[:1]); err != nil {
			t.Fatal(err)
		}
	}
}

// twins have the _id of another document in another representation.
func twins() []bson.D {
	return []bson.D{
		{{Key: "_id", Value: in(cutID(3), uuidrep.Standard)}, {Key: "customer", Value: in(cutID(3), uuidrep.JavaLegacy)}, {Key: "n", Value: int32(0)}}, // they become equal
		{{Key: "_id", Value: in(cutID(4), uuidrep.Standard)}, {Key: "n", Value: int32(8)}},
	}
}

// Two documents become one while the documents are compared, or behind the fence. Without a change
// stream, the first would be found behind the fence, too.
func TestCutoverSameIDLater(t *testing.T) {
	c := startCut(t, 1100, "a") // the two are not read at once
	c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
	old := c.db.Collection("a")
	settings := c.settingsOf("a")
	twins := twins()
	for i, set := range []func(f func()) (func(), func()){
		func(f func()) (func(), func()) { return f, nil },
		func(f func()) (func(), func()) { return nil, f },
	} {
		var f atFence
		before, after := set(func() {
			_, err := old.InsertOne(t.Context(), twins[i], options.InsertOne().SetBypassDocumentValidation(true))
			if err != nil {
				t.Error(err)
			}
		})
		command(t, c.atFence(&f, before, after), c.line("cutover", "--write")...).want(t, failure.ExitUsage).says(t, "two documents have the same _id after the conversion", "was rolled back")
		c.wantSettings(settings, "a", "a_new")
		if _, err := old.DeleteOne(t.Context(), twins[i][:1]); err != nil {
			t.Fatal(err)
		}
	}
	want := converted(t, all(t, old))
	c.cutover(c.s, failure.ExitOK, "--write")
	equal(t, all(t, c.db.Collection("a")), want)
}

// Documents that exchanged a unique value since they were copied are brought to agree.
func TestCutoverExchangedValues(t *testing.T) {
	c := startCut(t, 20)
	c.names = []string{"u"}
	old := c.db.Collection("u")
	if _, err := old.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		t.Fatal(err)
	}
	var docs []any
	for i := range 20 {
		docs = append(docs, cutDoc(i, i))
	}
	insert(t, old, docs)
	c.copy("u")
	exchange := func(a, b int) {
		for _, step := range [][2]int{{a, 1000}, {b, a}, {a, b}} {
			if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: in(cutID(step[0]), uuidrep.JavaLegacy)}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(step[1])}}}},
				options.UpdateOne().SetBypassDocumentValidation(true)); err != nil {
				t.Error(err)
			}
		}
	}
	exchange(1, 15)
	var f atFence
	c.cutover(c.atFence(&f, func() { exchange(2, 16) }, func() { exchange(3, 17) }), failure.ExitOK, "--write")
	equal(t, all(t, c.db.Collection("u")), converted(t, all(t, c.db.Collection("u_before_cutover"))))
	if n := all(t, c.db.Collection("u"))[marshalValue(t, in(cutID(1), uuidrep.Standard)).String()].Lookup("n").Int32(); n != 15 {
		t.Errorf("n is %d", n)
	}
}

// If the change stream has expired when a cutover that was killed goes on, everything is compared:
// before the fence while services write, or behind it. The command says so.
func TestCutoverStreamLost(t *testing.T) {
	for _, at := range []string{"before the fence", "behind the fence"} {
		t.Run(at, func(t *testing.T) {
			c := startCut(t, 30, "a", "b")
			c.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
			old := c.db.Collection("a")
			var mu sync.Mutex
			fenced, expired := false, 0
			p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
				mu.Lock()
				if _, err := r.command.LookupErr("validator", "$nor"); r.name() == "collMod" && err == nil {
					fenced = true
				}
				of, _ := r.command.Lookup("collection").StringValueOK()
				_, resumes := r.command.Lookup("pipeline", "0", "$changeStream", "startAfter").DocumentOK()
				now := expired == 0 && (at == "behind the fence" && fenced && r.name() == "getMore" && of == "$cmd.aggregate" || at == "before the fence" && !fenced && resumes)
				if now {
					expired++
				}
				mu.Unlock()
				if !now {
					return pass()
				}
				if _, err := old.InsertOne(t.Context(), cutDoc(900, 1), options.InsertOne().SetBypassDocumentValidation(true)); err != nil {
					t.Error(err)
				}
				return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "resume point may no longer be in the oplog"}, {Key: "code", Value: int32(286)}, {Key: "codeName", Value: "ChangeStreamHistoryLost"}})
			})
			r := command(t, p, c.line("cutover", "--write")...).want(t, failure.ExitOK)
			want := map[string]string{"before the fence": "the comparison begins again", "behind the fence": "all documents are compared behind the fence"}[at]
			if expired == 0 || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "may no longer be in the oplog") {
				t.Errorf("expired %d: %s", expired, r.stderr)
			}
			if len(all(t, c.db.Collection("a"))) != 31 {
				t.Error("a document is missing")
			}
			equal(t, all(t, c.db.Collection("a")), converted(t, all(t, c.db.Collection("a_before_cutover"))))
		})
	}
}

// Copies that were made of text and of Go structs are exchanged, and their cutover is undone: what did
// not change has its old bytes, new text has the usual spelling, and a new value that was none of a Go
// struct is listed. Text in _id is refused.
func TestCutoverForms(t *testing.T) {
	c := startCut(t, 0)
	doc := func(i int, v any) bson.D { return bson.D{{Key: "_id", Value: int32(i)}, {Key: "ref", Value: v}} }
	octets := func(i int) []byte {
		u := cutID(i)
		return u[:]
	}
	c.names = []string{"text", "structs"}
	var texts, structs []any
	for i := range 12 {
		texts = append(texts, doc(i, strings.ToUpper(cutID(i).String())))
		structs = append(structs, doc(i, bson.D{{Key: "uuid", Value: bson.Binary{Data: octets(i)}}, {Key: "valid", Value: true}}))
	}
	insert(t, c.db.Collection("text"), texts)
	insert(t, c.db.Collection("structs"), structs)
	for name, from := range map[string]string{"text": "text", "structs": "goStruct"} {
		c.copyFrom(name, name+"_new", from, "ref")
	}
	before := map[string]map[string]bson.Raw{"text": all(t, c.db.Collection("text")), "structs": all(t, c.db.Collection("structs"))}
	c.cutover(c.s, failure.ExitOK, "--write")
	c.release()
	fresh := in(cutID(500), uuidrep.Standard)
	set := func(name string) {
		t.Helper()
		set(t, c.db.Collection(name), int32(3), "ref", fresh)
	}
	set("text")
	set("structs")
	command(t, c.s, c.line("undo", "--write")...).want(t, failure.ExitUsage).says(t, "which fields the document of its Go struct would have")
	if _, err := c.db.Collection("structs").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: int32(3)}}); err != nil {
		t.Fatal(err)
	}
	command(t, c.s, c.line("undo", "--write")...).want(t, failure.ExitOK)
	three := marshalValue(t, int32(3)).String()
	delete(before["structs"], three)
	raw, err := bson.Marshal(doc(3, cutID(500).String()))
	if err != nil {
		t.Fatal(err)
	}
	before["text"][three] = raw
	for _, name := range c.names {
		equal(t, all(t, c.db.Collection(name)), before[name])
	}
	insert(t, c.db.Collection("ids"), []any{bson.D{{Key: "_id", Value: cutID(1).String()}}, bson.D{{Key: "_id", Value: cutID(2).String()}}})
	c.copyFrom("ids", "ids_new", "text", "_id")
	c.names = []string{"ids"}
	command(t, c.s, c.line("cutover", "--write")...).want(t, failure.ExitUsage).says(t, "its _ids are text")
}

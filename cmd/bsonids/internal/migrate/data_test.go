package migrate

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// stored returns n documents of a collection, each with a random UUID of version 4 in the field v, in a representation. Those of
// the same name have the same UUIDs.
func stored(t testing.TB, name string, n int, kind string) (docs []bson.Raw) {
	r := rand.New(rand.NewPCG(uint64(name[0]), 0))
	for i := range n {
		u := [16]byte(kindstest.Octets(r))
		u[6], u[8] = 0x40|u[6]&0x0f, 0x80|u[8]&0x3f
		docs = append(docs, marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "v", Value: kindstest.Stored(u, kind)}}))
	}
	return docs
}

// planned is the directory of a plan that was made of the collections a, b and c, which have n documents each in javaLegacy, and
// then edited. c has the copy c_new. Nothing is converted yet.
func planned(t *testing.T, n int, edit func(p *plan.Plan)) *migrated {
	t.Helper()
	m := &migrated{T: t, messages: new(messages), s: memory.Start(t), dir: filepath.Join(t.TempDir(), "d.d"),
		before: make(map[string][]bson.Raw), after: make(map[string][]bson.Raw), o: UndoOptions{Write: true}, limit: time.Second, putBack: func() error { return nil }}
	m.a = ApplyOptions{Dir: m.dir, Write: true, Workers: 1, AtOnce: 1}
	for _, name := range []string{"a", "b", "c"} {
		m.before[name], m.after[name] = stored(t, name, n, "javaLegacy"), stored(t, name, n, "standard")
		m.s.Put(m.collection(name), m.before[name]...)
	}
	m.after["c_new"], m.after["c"] = m.after["c"], m.before["c"]
	m.replan(func(p *plan.Plan) {
		m.entry(p, "c").Into = "c_new"
		if edit != nil {
			edit(p)
		}
	})
	return m
}

// replan makes the plan of the collections as they are, and writes it to the directory.
func (m *migrated) replan(edit func(p *plan.Plan)) {
	m.Helper()
	sv, err := Survey(m.Context(), m.session(), m.s.Client.Database("d"), survey.Options{}, &plan.Plan{})
	if err != nil {
		m.Fatal(err)
	}
	m.plan = plan.Build(sv, nil)
	edit(m.plan)
	state, err := plan.Create(m.dir)
	if err == nil {
		err = errors.Join(state.WritePlan(m.plan), state.Close())
	}
	if err != nil {
		m.Fatal(err)
	}
}

// edit changes the plan in the directory.
func (m *migrated) edit(edit func(p *plan.Plan)) {
	m.Helper()
	state, err := plan.Lock(m.dir)
	if err != nil {
		m.Fatal(err)
	}
	m.plan = state.Plan
	edit(m.plan)
	if err := errors.Join(state.WritePlan(m.plan), state.Close()); err != nil {
		m.Fatal(err)
	}
}

// entry returns the entry of a collection that the plan has once.
func (m *migrated) entry(p *plan.Plan, name string) *plan.Collection {
	m.Helper()
	i := slices.IndexFunc(p.Collections, func(c plan.Collection) bool { return c.Name == name })
	if i < 0 {
		m.Fatalf("the plan lacks %s", name)
	}
	return &p.Collections[i]
}

// session returns that of a command.
func (m *migrated) session() *session.Session {
	return &session.Session{Client: m.s.Client, Messages: m.messages, Recording: session.Recording{BatchTimeout: m.limit, Halves: true}}
}

// surveyed are the options of a survey of all.
var surveyed survey.Options

// apply applies the plan.
func (m *migrated) apply() (Applied, error) { return m.applyWith(m.Context()) }

func (m *migrated) applyWith(ctx context.Context) (r Applied, err error) {
	m.warnings = nil
	p, err := Prepare(m.a)
	if err != nil {
		return r, err
	}
	r, err = p.Apply(ctx, m.session())
	if err := p.Close(); err != nil {
		m.Error(err)
	}
	return r, err
}

// verify verifies the migration.
func (m *migrated) verify(allowChanged bool) (Proof, error) {
	m.Helper()
	m.warnings = nil
	state, err := plan.Look(m.dir)
	if err != nil {
		m.Fatal(err)
	}
	return Verify(m.Context(), m.session(), state, allowChanged)
}

// status returns that of the migration.
func (m *migrated) status() (Status, error) {
	m.Helper()
	state, err := plan.Look(m.dir)
	if err != nil {
		m.Fatal(err)
	}
	return StatusOfRecord(m.Context(), m.session(), "d", state, m.checksums)
}

// put replaces the documents of a collection.
func (m *migrated) put(name string, docs ...bson.Raw) { m.s.Put(m.collection(name), docs...) }

// docs returns the documents of a collection.
func (m *migrated) docs(name string) []bson.Raw { return m.s.Documents(m.collection(name)) }

// set changes a document of a collection.
func (m *migrated) set(name string, id any, field string, value any) {
	m.Helper()
	if _, err := m.collection(name).UpdateOne(context.Background(), bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}}); err != nil {
		m.Fatal(err)
	}
}

// setRuns changes the runs of a collection in the record.
func (m *migrated) setRuns(name, field string, value any) {
	m.Helper()
	if _, err := m.collection(record.Name).UpdateMany(context.Background(), bson.D{{Key: "collection", Value: name}}, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}}); err != nil {
		m.Fatal(err)
	}
}

// deny makes the server refuse a command about a collection with a code.
func (m *migrated) deny(code int32, command, name string) {
	m.s.Before = func(is string, c bson.Raw) (f memory.Fault) {
		if of, _ := c.Lookup(is).StringValueOK(); is == command && of == name {
			f.Code = code
		}
		return f
	}
}

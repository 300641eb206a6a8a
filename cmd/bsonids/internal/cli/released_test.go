package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// A rehearsal of apply and the run that writes say the same about a collection that a cutover has exchanged: while it is fenced,
// nothing is converted; after its release, when that was. The rest of the plan is converted, and if there is no rest, there is
// nothing to convert.
func TestApplyBesideCutover(t *testing.T) {
	for _, others := range []bool{false, true} {
		s := memory.Start(t)
		s.FerretDB = "v1.24.0"
		db := s.Client.Database("shop")
		orders, rest := db.Collection("orders"), db.Collection("rest")
		s.Put(orders, undetermined(t, 4)...)
		if others {
			s.Put(rest, undetermined(t, 3)...)
		}
		dir := trusting(t, s, func(p *plan.Plan) {
			for i := range p.Collections {
				csharp(&p.Collections[i])
				if p.Collections[i].Name == "orders" {
					p.Collections[i].Into = "orders_new"
				}
			}
			p.References = nil
		})
		command(t, "apply", dir, "--write", "--uri", s.URI).want(t, failure.ExitOK)
		runs, err := record.Runs(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		c := record.NewCutover([]record.Exchange{{Name: "orders", New: "orders_new", Kept: "orders_before_cutover"}}, "")
		for _, r := range runs {
			if r.Into != "" {
				c.Collections[0].Run, c.Collections[0].Maker, c.Collections[0].NewID = r.ID, r.Conversion, r.IntoUUID
			}
		}
		at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
		c.State, c.FencedAt, c.InPlaceAt = record.Switched, &at, &at
		s.Rename(orders, "orders_before_cutover")
		s.Rename(db.Collection("orders_new"), "orders")
		if err := c.Save(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		both := func(code int, texts ...string) {
			t.Helper()
			for _, args := range [][]string{{"apply", dir, "--uri", s.URI}, {"apply", dir, "--write", "--uri", s.URI}} {
				command(t, args...).want(t, code, texts...)
			}
		}
		if others {
			s.Put(rest, undetermined(t, 3)...)
		}
		both(failure.ExitUsage, `shop.orders is fenced by a cutover of orders, in the state "switched"`)
		c.State, c.FreedAt = record.Released, &at
		if err := c.Save(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		const released = "shop.orders was released at 2026-07-01 12:00:00 UTC: its copy orders_new is in its place, and the conversion is done"
		if !others {
			both(failure.ExitUsage, released)
			p, err := plan.ReadFile(dir)
			if err != nil {
				t.Fatal(err)
			}
			command(t, "plan", dir, "--give-up", p.Migration, "--write", "--uri", s.URI).want(t, failure.ExitOK, "can be given up: it was undone, released")
			continue
		}
		both(failure.ExitOK, released)
		for _, doc := range s.Documents(rest) {
			if subtype, _ := doc.Lookup("a").Binary(); subtype != bson.TypeBinaryUUID {
				t.Errorf("%v is not converted", doc)
			}
		}

		// The undo changes nothing without being told to leave what was released. Then it restores the rest, unless that refers to it.
		fresh := s.Documents(orders)
		undo := []string{"undo", dir, "--write", "--batch-timeout", "1s", "--uri", s.URI}
		command(t, undo...).want(t, failure.ExitUsage, "orders stay converted, because a cutover of them was released", "give --without-released to undo the rest, rest")
		whole, err := os.ReadFile(filepath.Join(dir, plan.PlanFile))
		if err != nil {
			t.Fatal(err)
		}
		edit(t, dir, "references: []", "references: [{between: [orders, rest]}]")
		command(t, undo...).want(t, failure.ExitUsage, "orders was released at 2026-07-01 12:00:00 UTC, which is the point of no return")
		command(t, append(undo, "--without-released")...).want(t, failure.ExitUsage, "there is nothing else to undo")
		if err := os.WriteFile(filepath.Join(dir, plan.PlanFile), whole, 0o600); err != nil {
			t.Fatal(err)
		}
		command(t, append(undo, "--without-released")...).want(t, failure.ExitOK, "orders: a cutover of orders was released", "the old collections are kept: orders_before_cutover")
		for i, doc := range s.Documents(rest) {
			if !doc.Lookup("a").Equal(undetermined(t, 3)[i].Lookup("a")) {
				t.Errorf("%v is not restored", doc)
			}
		}
		for i, doc := range s.Documents(orders) {
			if !bytes.Equal(doc, fresh[i]) {
				t.Errorf("%v was changed", doc)
			}
		}
	}
}

// A cutover exchanges collections that refer to each other together. If the plan does not have one of them any more whose copy was
// made, nor the reference, none is exchanged.
func TestCutoverOfEdited(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0"
	db := s.Client.Database("shop")
	for _, name := range []string{"orders", "rest"} {
		s.Put(db.Collection(name), undetermined(t, 4)...)
	}
	dir := trusting(t, s, func(p *plan.Plan) {
		for i := range p.Collections {
			csharp(&p.Collections[i])
			p.Collections[i].Into = p.Collections[i].Name + "_new"
		}
	})
	command(t, "apply", dir, "--write", "--uri", s.URI).want(t, failure.ExitOK)
	s.FerretDB = ""
	state, err := plan.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	state.Plan.Collections = slices.DeleteFunc(state.Plan.Collections, func(c plan.Collection) bool { return c.Name == "rest" })
	state.Plan.References = nil
	if err := errors.Join(state.WritePlan(state.Plan), state.Close()); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--write"}} {
		command(t, append([]string{"cutover", dir, "--uri", s.URI}, more...)...).want(t, failure.ExitUsage, `"rest": the plan does not convert it into rest_new any more`)
	}
	cutovers, err := record.Cutovers(t.Context(), db)
	if err != nil || len(cutovers) > 0 {
		t.Errorf("%v, %v", cutovers, err)
	}
}

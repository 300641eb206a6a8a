package servertest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A server that ends what exceeds its time limit gets half of a batch that did, and half of that. A
// document that takes too long alone is an error with its _id. Another server gets the same batch again.
func TestExpiredBatch(t *testing.T) {
	for _, tt := range []struct {
		enforces bool
		most     int // documents that the server writes within its limit
		code     int
		text     string
	}{
		{true, 3, failure.ExitOK, ""},
		{true, 0, failure.ExitFailed, "within the time limit of a batch, 30s"},
		{false, 3, failure.ExitUnreachable, "operation exceeded time limit"},
	} {
		for name, changes := range map[string][]func(*plan.Plan){"in place": nil, "copy": {intoNew("c")}} {
			t.Run(fmt.Sprint(name, " ", tt.enforces, " ", tt.most), func(t *testing.T) {
				s := mongotest.Start(t)
				db := connect(t, s)
				want := seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
				p := limited(t, s, tt.enforces, tt.most, "c", "c_standard")
				args := []string{"apply", prepared(t, s, "standard", changes...), "--write", "--batch", "40"}
				r := command(t, p, args...).want(t, tt.code)
				if !strings.Contains(r.stderr, tt.text) || tt.most == 0 && !strings.Contains(r.stderr, "document with _id") {
					t.Error(r.stderr)
				}
				if tt.code == failure.ExitOK {
					to := "c"
					if changes != nil {
						to = "c_standard"
					}
					equal(t, all(t, db.Collection(to)), want)
				}
			})
		}
	}
}

// limited returns a proxy of a server that ends updates, insertions and deletions of more than most
// documents of the collections at their time limit. Unless it enforces limits, it does not know the
// question whether it does.
func limited(t *testing.T, s target, enforces bool, most int, names ...string) *proxy {
	const expired = 50 // MaxTimeMSExpired
	return startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		of, _ := r.command.Lookup(r.name()).StringValueOK()
		limit, limited := r.command.Lookup("maxTimeMS").AsInt64OK()
		switch {
		case r.name() == "buildInfo":
			return r.reply(bson.D{{Key: "version", Value: "8.0.0"}, {Key: "ok", Value: 1.0}}) // FerretDB 1 is not asked
		case r.name() == "update" && limited && limit == 1:
			code := int32(168) // InvalidPipelineOperator
			if enforces {
				code = expired
			}
			return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "errmsg", Value: "refused"}})
		case slices.Contains(names, of) && slices.Contains([]string{"update", "insert", "delete"}, r.name()) && isBatch(r) && r.documents > most:
			return r.refuse(expired, "operation exceeded time limit")
		}
		return pass()
	})
}

// What repairs a copy, restores a conversion or exchanges a copy halves its batches, too.
func TestExpiredRepair(t *testing.T) {
	const most = 3
	t.Run("copy", func(t *testing.T) {
		s := mongotest.Start(t)
		db := connect(t, s)
		c := db.Collection("c")
		seed(t, c, 40, uuidrep.JavaLegacy, uuidrep.Standard)
		dir := prepared(t, s, "standard", intoNew("c"))
		args := []string{"apply", dir, "--write", "--batch", "40"}
		// A run ends after it has copied, and before it has compared.
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if of, _ := r.command.Lookup(r.name()).StringValueOK(); of == "c_standard" && r.name() == "find" {
				if _, err := r.command.LookupErr("filter", "_id", "$in"); err == nil {
					return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(8)}, {Key: "errmsg", Value: "refused"}})
				}
			}
			return pass()
		})
		command(t, p, args...).want(t, failure.ExitFailed)
		if _, err := c.UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "changed", Value: true}}}}); err != nil {
			t.Fatal(err)
		}
		command(t, limited(t, s, true, most, "c_standard"), args...).want(t, failure.ExitOK)
		command(t, s, "verify", dir).want(t, failure.ExitOK)
		if n := len(all(t, db.Collection("c_standard"))); n != 40 {
			t.Errorf("%d documents", n)
		}
	})
	t.Run("undo", func(t *testing.T) {
		s := mongotest.Start(t)
		c := connect(t, s).Collection("c")
		seed(t, c, 40, uuidrep.JavaLegacy, uuidrep.Standard)
		before := all(t, c)
		dir := filepath.Dir(planned(t, s))
		command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitOK)
		command(t, limited(t, s, true, most, "c"), "undo", dir, "--write", "--batch", "40").want(t, failure.ExitOK)
		equal(t, all(t, c), before)
	})
	t.Run("cutover", func(t *testing.T) {
		c := startCut(t, 40, "a")
		old := c.db.Collection("a")
		change := func() {
			if _, err := c.db.Collection("a").UpdateMany(t.Context(), bson.D{}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}}); err != nil {
				t.Fatal(err)
			}
		}
		change()
		want := all(t, old)
		c.cutover(limited(t, c.s, true, most, "a_new"), failure.ExitOK, "--write")
		equal(t, all(t, c.db.Collection("a")), converted(t, want))
		c.release()
		change()
		command(t, limited(t, c.s, true, most, "a_before_cutover"), c.line("undo", "--write")...).want(t, failure.ExitOK)
		if n := len(all(t, c.db.Collection("a"))); n != 40 {
			t.Errorf("%d documents", n)
		}
	})
	t.Run("follow", func(t *testing.T) {
		s := mongotest.Start(t)
		s.Require(t, mongotest.ChangeStreams)
		app := newApplication(t, connect(t, s), "c", 40)
		dir := followPlan(t, s)
		command(t, s, follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
		for range 60 {
			app.write()
		}
		command(t, limited(t, s, true, most, "new"), follow(dir, "--until-caught-up")...).want(t, failure.ExitOK)
		equal(t, all(t, connect(t, s).Collection("new")), app.want())
	})
}

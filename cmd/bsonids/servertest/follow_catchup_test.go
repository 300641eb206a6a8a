package servertest

import (
	"context"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// CatchUp brings a copy up to a time, also if the source and the copy were renamed since the copy
// was made, and with a position that was never saved.
func TestCatchUp(t *testing.T) {
	for _, followed := range []bool{true, false} {
		s := mongotest.Start(t)
		s.Require(t, mongotest.ChangeStreams)
		db := connect(t, s)
		app := newApplication(t, db, "c", 20)
		dir := t.TempDir()
		if followed {
			command(t, s, follow(s.Database(), dir, "--until-caught-up")...).want(t, failure.ExitOK)
		} else {
			command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--into", "new", "--write",
				"--state", filepath.Join(dir, "state")).want(t, failure.ExitOK)
		}
		source, target := db.Collection("c"), db.Collection("new")
		for range 10 {
			app.insert()
			app.update()
		}
		if followed {
			app.delete()
			rename(t, db, "c", "c_old")
			source = db.Collection("c_old")
			app.coll = source
			for range 10 { // of a program that knows the new name
				app.write()
			}
			rename(t, db, "new", "c")
			target = db.Collection("c")
		}
		to, err := convert.OperationTime(t.Context(), db.Client())
		if err != nil {
			t.Fatal(err)
		}
		conv := conversion(t, "javaLegacy", "standard")
		state, err := convert.OpenState(filepath.Join(dir, "state"), convert.Identity{Database: s.Database(), Collection: "c", From: "javaLegacy", To: "standard", Into: "new"})
		if err != nil {
			t.Fatal(err)
		}
		conv.Judge = state.Decision.Judge(conv.From.Order())
		beat := func(ctx context.Context) error {
			_, err := db.Collection(record.Name).UpdateOne(ctx, bson.D{{Key: "_id", Value: "beat"}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
			return err
		}
		res, err := convert.CatchUp(t.Context(), source, target, convert.Options{Conversion: conv, Write: true, State: state, Follow: &convert.Follow{Record: record.Name, Beat: beat}}, to)
		if err != nil || !res.Verified || !res.Stream.CaughtUp || (res.Passes == 0) != followed {
			t.Errorf("%+v, %v", res, err)
		}
		equal(t, all(t, target), app.want())
		if err := state.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

package guard

import (
	"bytes"
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// The levels and actions of validation, as MongoDB names them.
const (
	Moderate = "moderate"
	Strict   = "strict"

	levelOff          = "off"
	levelConstraint   = "constraint" // MongoDB 9.0
	actionError       = "error"
	actionErrorAndLog = "errorAndLog" // MongoDB 8.1
)

// Settings are the validator of a collection, its level and its action.
type Settings = record.Settings

// settings returns the settings in the specification of a collection. The defaults of the server are
// filled in.
func settings(spec *mongo.CollectionSpecification) Settings {
	s := Settings{Level: Strict, Action: actionError}
	if v, ok := spec.Options.Lookup("validator").DocumentOK(); ok && len(v) > 5 {
		s.Validator = bytes.Clone(v)
	}
	if v, ok := spec.Options.Lookup("validationLevel").StringValueOK(); ok {
		s.Level = v
	}
	if v, ok := spec.Options.Lookup("validationAction").StringValueOK(); ok {
		s.Action = v
	}
	return s
}

// SettingsOf returns the settings in the specification of a collection. The defaults of the server
// are filled in.
func SettingsOf(spec *mongo.CollectionSpecification) Settings { return settings(spec) }

// Modify gives the collection the settings, with write concern majority, and checks that it then has
// them.
func Modify(ctx context.Context, coll *mongo.Collection, s Settings) error {
	majority := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}
	return modify(ctx, coll, append(command(coll.Name(), s), majority), s)
}

// enforced reports whether the server refuses documents because of the settings.
func enforced(s Settings) bool {
	return len(s.Validator) > 0 && s.Level != levelOff && (s.Action == actionError || s.Action == actionErrorAndLog)
}

// Own reports whether the settings have a validator, and whether the server refuses documents because
// of it.
func Own(s Settings) (own, isEnforced bool) { return len(s.Validator) > 0, enforced(s) }

// guarded returns the settings of a collection with the clause. A validator that is enforced stays
// in force. One that is not, because its level is off or its action is to warn, would be enforced
// with the clause, and is left out.
func guarded(before Settings, clause bson.Raw) Settings {
	s := Settings{Validator: clause, Level: Moderate, Action: actionError}
	if enforced(before) {
		s.Validator = document(bson.D{{Key: "$and", Value: bson.A{bson.Raw(before.Validator), clause}}})
	}
	if before.Action == actionErrorAndLog {
		s.Action = actionErrorAndLog
	}
	return s
}

// document encodes a document of this package, which cannot fail.
func document(d bson.D) bson.Raw {
	b, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	return b
}

// command returns the command that gives a collection the settings.
func command(collection string, s Settings) bson.D {
	validator := bson.Raw(s.Validator)
	if len(validator) == 0 {
		validator = document(bson.D{})
	}
	return bson.D{{Key: "collMod", Value: collection}, {Key: "validator", Value: validator},
		{Key: "validationLevel", Value: s.Level}, {Key: "validationAction", Value: s.Action}}
}

// modify changes the settings of the collection with a command, and checks that the server has then
// the settings want.
func modify(ctx context.Context, coll *mongo.Collection, command bson.D, want Settings) error {
	if err := coll.Database().RunCommand(ctx, command).Err(); err != nil {
		return err
	}
	spec, err := server.FindCollection(ctx, coll)
	if err != nil {
		return err
	}
	if got := settings(spec); !got.Equal(want) {
		return &Error{Reason: ErrChanged, Text: fmt.Sprintf("the server was asked for other settings of %s.%s than it now has: "+
			"another program changed them at the same time, or the server does not keep them; it has %s",
			coll.Database().Name(), coll.Name(), Describe(got))}
	}
	return nil
}

// Describe returns the settings in one line. The validator is extended JSON.
func Describe(s Settings) string {
	validator := "no validator"
	if len(s.Validator) > 0 {
		validator = "the validator " + s.Text()
	}
	return fmt.Sprintf("%s, level %s, action %s", validator, s.Level, s.Action)
}

// Shell returns the command for mongosh that gives a collection the settings.
func Shell(coll *mongo.Collection, s Settings) string {
	b, err := bson.MarshalExtJSON(command(coll.Name(), s), true, false)
	if err != nil {
		return err.Error()
	}
	name, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: coll.Database().Name()}}, true, false)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("db.getSiblingDB(%s).runCommand(EJSON.deserialize(%s))", name[5:len(name)-1], b)
}

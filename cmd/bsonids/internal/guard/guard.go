// Package guard makes and sets validators: one that refuses values of the old subtype while a collection is
// converted in place, besides the validator that the collection has.
package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
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

// ErrChanged is the error of settings that another program changes.
var ErrChanged = errors.New("another program changed the settings")

// SettingsOf returns the settings in the specification of a collection. The defaults of the server
// are filled in.
func SettingsOf(spec *mongo.CollectionSpecification) record.Settings {
	s := record.Settings{Level: Strict, Action: actionError}
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

// Enforced reports whether the server refuses documents because of the settings.
func Enforced(s record.Settings) bool {
	return len(s.Validator) > 0 && s.Level != levelOff && (s.Action == actionError || s.Action == actionErrorAndLog)
}

// Guarded returns the settings of a collection that also refuses the values, at level moderate. A validator
// that is enforced stays in force. One that is not, because its level is off or its action is to warn, would
// be enforced with the condition, and is left out.
func Guarded(before record.Settings, values []record.Refused) record.Settings {
	s := record.Settings{Validator: Clause(values), Level: Moderate, Action: actionError}
	if Enforced(before) {
		s.Validator = document(bson.D{{Key: "$and", Value: bson.A{bson.Raw(before.Validator), bson.Raw(s.Validator)}}})
	}
	if before.Action == actionErrorAndLog {
		s.Action = actionErrorAndLog
	}
	return s
}

// Fits returns a usage error if the collection cannot have a validator, or not one more.
func Fits(db string, spec *mongo.CollectionSpecification) error {
	s, why := SettingsOf(spec), Unchangeable(spec)
	switch {
	case why != "":
	case slices.Contains([]string{"admin", "config", "local"}, db):
		why = "MongoDB allows no validators in the database " + db
	case encrypts(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: s.Validator}):
		why = "its validator is a schema with encrypt or encryptMetadata: clients look for it at the top level of the " +
			"validator and would write unencrypted values, and MongoDB refuses it at level moderate"
	default:
		return nil
	}
	return failure.Usagef("cannot guard %s.%s, because %s", db, spec.Name, why)
}

// Unchangeable returns why a collection cannot have another validator, or "" if it can.
func Unchangeable(spec *mongo.CollectionSpecification) string {
	switch {
	case spec.Type == "view" || spec.Type == "timeseries":
		return "it is a " + spec.Type
	case spec.Options.Lookup("encryptedFields").Type == bson.TypeEmbeddedDocument:
		return "it has encrypted fields (encryptedFields), whose values a validator cannot test"
	case SettingsOf(spec).Level == levelConstraint:
		return "MongoDB does not change a validator at level constraint; change the level to strict first"
	}
	return ""
}

// Unexchangeable returns why a cutover cannot put a copy in the place of a collection, or "" if it can: it cannot be
// fenced, or its documents cannot be brought to agree.
func Unexchangeable(spec *mongo.CollectionSpecification) string {
	if capped, _ := spec.Options.Lookup("capped").BooleanOK(); capped {
		return "it is a capped collection, in which documents cannot be deleted"
	}
	return Unchangeable(spec)
}

// encrypts reports whether a validator has the keywords of client-side encryption.
func encrypts(v bson.RawValue) bool {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray || len(v.Value) == 0 {
		return false
	}
	elems, err := bson.Raw(v.Value).Elements()
	return err == nil && slices.ContainsFunc(elems, func(e bson.RawElement) bool {
		return e.Key() == "encrypt" || e.Key() == "encryptMetadata" || encrypts(e.Value())
	})
}

// Known reports whether the server knows the command that sets validators. The command that is sent
// changes nothing: it names a collection that does not exist. A user who may not send it may still
// see the validator.
func Known(ctx context.Context, db *mongo.Database) (bool, error) {
	err := db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "bsonids.absent"}}).Err()
	switch {
	case failure.Means(err, failure.Unknown):
		return false, nil
	case failure.Means(err, failure.Missing|failure.Unauthorized|failure.Atlas):
		return true, nil
	}
	return err == nil, err
}

// command returns the command that gives a collection the settings.
func command(collection string, s record.Settings) bson.D {
	validator := bson.Raw(s.Validator)
	if len(validator) == 0 {
		validator = document(bson.D{})
	}
	return bson.D{{Key: "collMod", Value: collection}, {Key: "validator", Value: validator},
		{Key: "validationLevel", Value: s.Level}, {Key: "validationAction", Value: s.Action}}
}

// Modify gives the collection the settings, with write concern majority, and checks that it then has
// them.
func Modify(ctx context.Context, coll *mongo.Collection, s record.Settings) error {
	return modify(ctx, coll, command(coll.Name(), s), s)
}

// SetLevel is like Modify for a collection that has the settings but for the level. A validator that another
// program sets meanwhile stays.
func SetLevel(ctx context.Context, coll *mongo.Collection, s record.Settings) error {
	return modify(ctx, coll, bson.D{{Key: "collMod", Value: coll.Name()}, {Key: "validationLevel", Value: s.Level}}, s)
}

func modify(ctx context.Context, coll *mongo.Collection, command bson.D, want record.Settings) error {
	majority := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}
	if err := coll.Database().RunCommand(ctx, append(command, majority)).Err(); err != nil {
		return err
	}
	spec, err := server.FindCollection(ctx, coll)
	if err != nil {
		return err
	}
	if got := SettingsOf(spec); !got.Equal(want) {
		return &failure.Error{Err: ErrChanged, Text: fmt.Sprintf("the server was asked for other settings of %s.%s than it now has: "+
			"another program changed them at the same time, or the server does not keep them; it has %s",
			coll.Database().Name(), coll.Name(), Describe(got))}
	}
	return nil
}

// Describe returns the settings in one line. The validator is extended JSON.
func Describe(s record.Settings) string {
	validator := "no validator"
	if len(s.Validator) > 0 {
		validator = "the validator " + s.Text()
	}
	return fmt.Sprintf("%s, level %s, action %s", validator, s.Level, s.Action)
}

// Shell returns the command for mongosh that gives a collection the settings.
func Shell(coll *mongo.Collection, s record.Settings) string {
	b, err := bson.MarshalExtJSON(command(coll.Name(), s), true, false)
	if err != nil {
		return err.Error()
	}
	name, err := json.Marshal(coll.Database().Name())
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("db.getSiblingDB(%s).runCommand(EJSON.deserialize(%s))", name, b)
}

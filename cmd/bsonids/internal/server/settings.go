package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// Settings are the validator of a collection, its level and its action.
type Settings struct {
	Validator []byte `bson:"validator"` // a BSON document, as a binary value; empty if there is none
	Level     string `bson:"level"`
	Action    string `bson:"action"`
}

// Equal reports whether both settings have the same effect.
func (s Settings) Equal(t Settings) bool {
	return bytes.Equal(s.Validator, t.Validator) && s.Level == t.Level && s.Action == t.Action
}

// Text returns the validator in canonical extended JSON.
func (s Settings) Text() string {
	if len(s.Validator) == 0 {
		return "{}"
	}
	b, err := bson.MarshalExtJSON(bson.Raw(s.Validator), true, false)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// The levels and actions of validation, as MongoDB names them.
const (
	strict      = "strict"
	constraint  = "constraint" // MongoDB 9.0
	actionError = "error"
)

// ErrChanged is the error of settings that another program changes.
var ErrChanged = errors.New("another program changed the settings")

// SettingsOf returns the settings in the specification of a collection. The defaults of the server
// are filled in.
func SettingsOf(spec *mongo.CollectionSpecification) Settings {
	s := Settings{Level: strict, Action: actionError}
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

// Unchangeable returns why a collection cannot have another validator, or "" if it can.
func Unchangeable(spec *mongo.CollectionSpecification) string {
	switch {
	case spec.Type == "view" || spec.Type == "timeseries":
		return "it is a " + spec.Type
	case spec.Options.Lookup("encryptedFields").Type == bson.TypeEmbeddedDocument:
		return "it has encrypted fields (encryptedFields), whose values a validator cannot test"
	case SettingsOf(spec).Level == constraint:
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

// Validates reports whether the server knows the command that sets validators. The command that is sent
// changes nothing: it names a collection that does not exist. A user who may not send it may still
// see the validator.
func Validates(ctx context.Context, db *mongo.Database) (bool, error) {
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
func command(collection string, s Settings) bson.D {
	var validator any = bson.D{}
	if len(s.Validator) > 0 {
		validator = bson.Raw(s.Validator)
	}
	return bson.D{{Key: "collMod", Value: collection}, {Key: "validator", Value: validator},
		{Key: "validationLevel", Value: s.Level}, {Key: "validationAction", Value: s.Action}}
}

// SetSettings asks for the settings of the collection, with write concern majority. [CheckSettings] tells whether the collection has
// them then.
func SetSettings(ctx context.Context, coll *mongo.Collection, s Settings) error {
	majority := bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}
	return coll.Database().RunCommand(ctx, append(command(coll.Name(), s), majority)).Err()
}

// CheckSettings returns an error that wraps [ErrChanged] if the collection has other settings.
func CheckSettings(ctx context.Context, coll *mongo.Collection, want Settings) error {
	spec, err := FindCollection(ctx, coll)
	if err != nil {
		return err
	}
	if got := SettingsOf(spec); !got.Equal(want) {
		return &failure.Error{Err: ErrChanged, Text: fmt.Sprintf("the server was asked for other settings of %s.%s than it now has: "+
			"another program changed them at the same time, or the server does not keep them; it has %s",
			coll.Database().Name(), coll.Name(), got)}
	}
	return nil
}

// String returns the settings in one line. The validator is extended JSON.
func (s Settings) String() string {
	validator := "no validator"
	if len(s.Validator) > 0 {
		validator = "the validator " + s.Text()
	}
	return fmt.Sprintf("%s, level %s, action %s", validator, s.Level, s.Action)
}

package record

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// kindGuard is the kind of the documents of guards.
const kindGuard = "guard"

// The states of a guard.
const (
	Setting  = "setting"  // the document was inserted, and the validator may not be set yet
	Set      = "set"      // the validator was set
	Removing = "removing" // the settings that the collection had before are being restored
)

// Guard is the document of a validator that protects a collection against old values.
type Guard struct {
	Saved      `bson:",inline"` // the _id is collection/guard
	Collection string           `bson:"guards"`
	UUID       *bson.Binary     `bson:"collectionUUID,omitempty"` // UUID of the collection, if the server reports one

	Refuses []Refused `bson:"refuses"`
	Before  Settings  `bson:"before"` // what the collection had
	Now     Settings  `bson:"now"`    // what the guard has set
}

// Refused are the values of a field that a guard refuses: those of a subtype, or text, which has a number
// in the place of its subtype.
type Refused struct {
	Path    string `bson:"path"` // without the brackets of arrays
	Subtype byte   `bson:"fromSubtype"`
}

// IsText reports whether text is refused.
func (r Refused) IsText() bool { return kinds.FormOf(r.Subtype) == kinds.Text }

func (r Refused) String() string {
	if r.IsText() {
		return kinds.OfText + " in " + r.Path
	}
	return string(kinds.StoredAs(r.Subtype)) + " in " + r.Path
}

// Settings are the validator of a collection, its level and its action.
type Settings struct {
	Validator []byte `bson:"validator"` // a BSON document, as a binary value; empty if there is none
	Level     string `bson:"level"`
	Action    string `bson:"action"`
}

// Against names the values that the guard refuses.
func (g *Guard) Against() string {
	var names []string
	for _, r := range g.Refuses {
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
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

// MarshalJSON writes the settings as results of commands have them, the validator in relaxed extended JSON.
func (s Settings) MarshalJSON() ([]byte, error) {
	var validator json.RawMessage
	if len(s.Validator) > 0 {
		var err error
		if validator, err = bson.MarshalExtJSON(bson.Raw(s.Validator), false, false); err != nil {
			return nil, err
		}
	}
	return json.Marshal(struct {
		Validator json.RawMessage `json:"validator"`
		Level     string          `json:"validationLevel"`
		Action    string          `json:"validationAction"`
	}{validator, s.Level, s.Action})
}

// FindGuard returns the document of the guard of a collection, or nil if there is none. A guard of a
// collection that was renamed since is found by the UUID of the collection.
func FindGuard(ctx context.Context, db *mongo.Database, name string, uuid *bson.Binary) (*Guard, error) {
	which := bson.A{bson.D{{Key: "_id", Value: guardID(name)}}}
	if uuid != nil {
		which = append(which, bson.D{{Key: "collectionUUID", Value: *uuid}})
	}
	guards, err := find[*Guard](ctx, collection(db), bson.D{{Key: "kind", Value: kindGuard}, {Key: "$or", Value: which}})
	if err != nil {
		return nil, err
	}
	var found *Guard
	for _, g := range guards {
		if found == nil || !g.Stale(uuid) {
			found = g
		}
	}
	return found, nil
}

// Guards returns the guards of a database, in the order of the names of their collections.
func Guards(ctx context.Context, db *mongo.Database) ([]*Guard, error) {
	return find[*Guard](ctx, collection(db), bson.D{{Key: "kind", Value: kindGuard}}, "guards")
}

// Stale reports whether the guard is of another collection than the one with the UUID: one of the
// same name that was dropped.
func (g *Guard) Stale(uuid *bson.Binary) bool {
	return g.UUID != nil && uuid != nil && !g.UUID.Equal(*uuid)
}

// Insert inserts the document of a guard that is about to be set, in the state [Setting]. The error is an [*Error]
// if the record is in another collection, and wraps [ErrTakenOver] if the collection has a guard.
func (g *Guard) Insert(ctx context.Context, db *mongo.Database, version string) error {
	if _, err := open(ctx, db); err != nil {
		return err
	}
	g.Saved = Saved{ID: guardID(g.Collection), Kind: kindGuard, State: Setting, By: whoAmI(version)}
	return g.save(ctx, db, g)
}

// Advance changes the state and the level of the guard in the record. The error wraps [ErrTakenOver] if another
// command changed the document since it was read.
func (g *Guard) Advance(ctx context.Context, db *mongo.Database, state, level string) error {
	g.State, g.Now.Level = state, level
	return g.save(ctx, db, g)
}

// Delete deletes the document of the guard. It reports false if another command changed or deleted
// it since it was read.
func (g *Guard) Delete(ctx context.Context, db *mongo.Database) (bool, error) {
	return g.delete(ctx, db)
}

func guardID(name string) string { return name + "/guard" }

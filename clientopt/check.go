package clientopt

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/inuse"
	"github.com/bsonids/bsonids/uuidrep"
)

// ErrForeignRegistry reports a registry that this library did not build, such as that of a client of mongo.Connect. What it
// does with UUIDs is not known.
var ErrForeignRegistry = errors.New("package bsoncodec did not build the registry")

// A Setup says what is at work in a client, a database or a collection.
type Setup struct {
	// Representation is that in which a uuid.UUID is written. Unspecified means that writing one is an error, unless Text is set.
	Representation uuidrep.Representation

	// Text is set if a uuid.UUID is written as text because EncodeAsString of the registry's builder was called. Representation
	// is then Unspecified.
	Text bool

	// Options are the BSON options.
	Options bsoncodec.Options
}

// String returns s as a line for a log: "standard, UseJSONStructTags, OmitEmpty".
func (s Setup) String() string {
	words := []string{s.Representation.String()}
	if s.Text {
		words[0] = "text"
	}
	v := reflect.ValueOf(s.Options)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Bool && f.Bool() {
			words = append(words, v.Type().Field(i).Name)
		}
	}
	return strings.Join(words, ", ")
}

// checked is written to learn the representation: the UUID of the specification's tests.
var checked = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

// Check returns what is at work in target, a *mongo.Client, *mongo.Database or *mongo.Collection. Call it when a program
// starts, to notice a mongo.Connect that was left in place or a registry that was set later:
//
//	setup, err := clientopt.Check(client)
//	if err != nil {
//		log.Fatal(err)
//	}
//	log.Print("UUIDs: ", setup)
//
// It sends nothing and asks no server. It reads what the target has now: a collection that was made with options of its own
// differs from its client, so check it, too. The collection of an autoid.Collection and of a mixedrep.Collection is their
// field Collection.
//
// It is [ErrForeignRegistry] if this library did not build the registry, [uuidrep.ErrUnspecified] if writing a uuid.UUID is an
// error, and an error if target is nil, if a codec of the caller's writes a uuid.UUID, or if this version of the driver is not
// known. Each names the way out. With ErrUnspecified the Setup has the options, for a program that writes fields of package
// uuidrep only.
func Check[T mongo.Client | mongo.Database | mongo.Collection](target *T) (Setup, error) {
	name, remedy := "client", "make it by clientopt.Connect, or give it the registry of clientopt.NewClientRegistry"
	switch any(target).(type) {
	case *mongo.Database:
		name, remedy = "database", "take it from a client of clientopt.Connect, or give it the registry of clientopt.NewClientRegistry"
	case *mongo.Collection:
		name, remedy = "collection", "take it from a client of clientopt.Connect, or from clientopt.Collection"
	}
	if target == nil {
		return Setup{}, fmt.Errorf("clientopt: the %s is nil", name)
	}
	var reg *bson.Registry
	var s Setup
	var ok bool
	switch t := any(target).(type) {
	case *mongo.Client:
		reg, s.Options, ok = inuse.Of(t)
	case *mongo.Database:
		reg, s.Options, ok = inuse.Of(t)
	case *mongo.Collection:
		reg, s.Options, ok = inuse.Of(t)
	}
	if !ok {
		return Setup{}, fmt.Errorf("clientopt: cannot read the settings of the %s: %w", name, errUnknownDriver)
	}
	if built.Of(reg) == nil {
		return Setup{}, fmt.Errorf("clientopt: %w of the %s, and what it does with UUIDs is not known: %s",
			ErrForeignRegistry, name, remedy)
	}
	written, err := bsoncodec.MarshalValue(reg, checked)
	if errors.Is(err, uuidrep.ErrUnspecified) {
		return s, fmt.Errorf("clientopt: the %s cannot write a uuid.UUID: %w", name, err)
	}
	if err == nil {
		if written.Type == bson.TypeString {
			s.Text = true
			return s, nil
		}
		subtype, octets, _ := written.BinaryOK()
		for _, r := range []uuidrep.Representation{
			uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy,
		} {
			b, err := uuidrep.NewBinaryWithRepresentation(checked, r)
			if err == nil && b.Subtype == subtype && bytes.Equal(b.Data, octets) {
				s.Representation = r
				return s, nil
			}
		}
		err = fmt.Errorf("it writes %v", written.Type)
	}
	return Setup{}, fmt.Errorf("clientopt: a codec of the caller's in the registry of the %s writes uuid.UUID: %w; "+
		"remove it", name, err)
}

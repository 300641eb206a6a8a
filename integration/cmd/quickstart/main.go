// Command quickstart shows on a real server what each setting of uuidRepresentation stores and
// reads.
//
//	go run ./integration/cmd/quickstart              on a server inside the process
//	go run ./integration/cmd/quickstart --uri URI    on yours, in a database that is dropped afterwards
//
// The exit code is 0 if every row agrees with the driver specification "Handling of Native UUID
// Types", 1 if a row does not agree or the server fails, and 2 for an invalid command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/objectidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// testUUID is the UUID of the test plan of the specification.
var testUUID = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

// specified is the table of the specification: what each setting stores for the test UUID.
var specified = []struct {
	rep     uuidrep.Representation
	subtype byte
	octets  string
}{
	{uuidrep.Unspecified, 0, ""}, // nothing: encoding is an error
	{uuidrep.Standard, 4, "00112233445566778899AABBCCDDEEFF"},
	{uuidrep.CSharpLegacy, 3, "33221100554477668899AABBCCDDEEFF"},
	{uuidrep.JavaLegacy, 3, "7766554433221100FFEEDDCCBBAA9988"},
	{uuidrep.PythonLegacy, 3, "00112233445566778899AABBCCDDEEFF"},
}

func main() {
	uri := flag.String("uri", "", "connection string of the server, without uuidRepresentation; by default, a server is started in this process")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "quickstart: takes no arguments")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout, *uri); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, uri string) (err error) {
	where := "the given server"
	if uri == "" {
		where = "a server started in this process (FerretDB, over TCP)"
	} else if rep, err := clientopt.Representation(uri); err != nil {
		return err
	} else if rep != uuidrep.Unspecified {
		return errors.New("the connection string must not set uuidRepresentation, because each of its values is tested")
	}
	fmt.Fprintf(w, "The UUID %v as _id, on %s:\n\n", testUUID, where)
	if uri == "" {
		server, err := embedded.Start()
		if err != nil {
			return err
		}
		defer server.Close()
		uri = server.URI()
	}
	plain, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(10 * time.Second))
	if err != nil {
		return err
	}
	defer plain.Disconnect(ctx)
	if err := plain.Ping(ctx, nil); err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	db := plain.Database("bsonids_quickstart_" + bson.NewObjectID().Hex())
	defer func() {
		if dropErr := db.Drop(ctx); err == nil && dropErr != nil {
			err = fmt.Errorf("cannot drop the database %s: %w", db.Name(), dropErr)
		}
	}()

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "uuidRepresentation\tsubtype\tbytes on the server\tdecoded into a struct field\tdecoded into any")
	var wrong []string
	var refusal error
	for _, s := range specified {
		r, err := try(ctx, db, uri, s.rep)
		if err != nil {
			return fmt.Errorf("%v: %w", s.rep, err)
		}
		fmt.Fprintf(table, "%v\t%s\t%s\t%s\t%s\n", s.rep, r.subtype, r.octets, describe(r.field, r.fieldErr), describe(r.implicit, nil))
		if !r.is(s.subtype, s.octets) {
			wrong = append(wrong, s.rep.String())
		}
		if r.insertErr != nil {
			refusal = r.insertErr
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nWith unspecified, writing a UUID fails:\n  %v\n", refusal)

	subtype, octets, err := withoutLibrary(ctx, db)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe driver without this library, for every uuidRepresentation:\n  subtype %d, %s, and it cannot decode subtypes 3 and 4 into a UUID\n", subtype, octets)

	id, err := generated(ctx, db, uri)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nAn _id from the generator of this library, in an insert:\n  ObjectID %s, generated at %s\n", id.Hex(), id.Timestamp().UTC().Format(time.RFC3339))

	if len(wrong) > 0 {
		return fmt.Errorf("results differ from the specification: %s", strings.Join(wrong, ", "))
	}
	fmt.Fprintln(w, "\nEvery row matches the specification.")
	return nil
}

// row holds what one setting wrote and read.
type row struct {
	insertErr       error
	subtype, octets string
	field           uuid.UUID
	fieldErr        error
	implicit        any
}

// is reports whether r is the specified row for subtype and octets. If octets is empty, the
// specified row is the row of unspecified.
func (r row) is(subtype byte, octets string) bool {
	if octets == "" {
		_, binary := r.implicit.(bson.Binary)
		return errors.Is(r.insertErr, uuidrep.ErrUnspecified) && errors.Is(r.fieldErr, uuidrep.ErrUnspecified) && binary
	}
	return r.insertErr == nil && r.subtype == fmt.Sprint(subtype) && r.octets == octets &&
		r.fieldErr == nil && r.field == testUUID && r.implicit == testUUID
}

// try inserts the test UUID through a client with the setting rep. It reads the stored value back,
// as raw BSON, into a struct and into a bson.M. Unspecified refuses to write a UUID, so the driver
// writes a Binary of subtype 4 instead.
func try(ctx context.Context, db *mongo.Database, uri string, rep uuidrep.Representation) (row, error) {
	client, err := clientopt.Connect(withOption(uri, "uuidRepresentation="+rep.String()))
	if err != nil {
		return row{}, err
	}
	defer client.Disconnect(ctx)
	coll := client.Database(db.Name()).Collection(rep.String())

	r := row{subtype: "–", octets: "an error"}
	_, err = coll.InsertOne(ctx, bson.D{{Key: "_id", Value: testUUID}})
	switch {
	case errors.Is(err, uuidrep.ErrUnspecified):
		r.insertErr = err
		if _, err := db.Collection(rep.String()).InsertOne(ctx, bson.D{{Key: "_id", Value: uuidrep.NewBinary(testUUID)}}); err != nil {
			return r, err
		}
	case err != nil:
		return r, err
	default:
		raw, err := db.Collection(rep.String()).FindOne(ctx, bson.D{}).Raw()
		if err != nil {
			return r, err
		}
		subtype, octets, _ := raw.Lookup("_id").BinaryOK()
		r.subtype, r.octets = fmt.Sprint(subtype), fmt.Sprintf("%X", octets)
	}

	found := coll.FindOne(ctx, bson.D{})
	var field struct {
		ID uuid.UUID `bson:"_id"`
	}
	r.fieldErr = found.Decode(&field)
	r.field = field.ID
	var implicit bson.M
	if err := found.Decode(&implicit); err != nil {
		return r, err
	}
	r.implicit = implicit["_id"]
	return r, nil
}

func describe(v any, err error) string {
	if err != nil {
		return "an error"
	}
	switch v := v.(type) {
	case uuid.UUID:
		if v == testUUID {
			return "the UUID"
		}
		return "another UUID: " + v.String()
	case bson.Binary:
		return fmt.Sprintf("a Binary of subtype %d", v.Subtype)
	}
	return fmt.Sprintf("%T", v)
}

// withoutLibrary inserts the test UUID through the driver's default registry and returns the stored
// value.
func withoutLibrary(ctx context.Context, db *mongo.Database) (subtype byte, octets string, err error) {
	coll := db.Collection("driver")
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: testUUID}}); err != nil {
		return 0, "", err
	}
	raw, err := coll.FindOne(ctx, bson.D{}).Raw()
	if err != nil {
		return 0, "", err
	}
	subtype, data, _ := raw.Lookup("_id").BinaryOK()
	return subtype, fmt.Sprintf("%X", data), nil
}

// generated inserts a document without an _id and returns the _id that the server holds.
func generated(ctx context.Context, db *mongo.Database, uri string) (bson.ObjectID, error) {
	client, err := clientopt.Connect(withOption(uri, "uuidRepresentation=standard"))
	if err != nil {
		return bson.NilObjectID, err
	}
	defer client.Disconnect(ctx)
	coll := autoid.Wrap(client.Database(db.Name()).Collection("generated"), objectidgen.Default())
	res, err := coll.InsertOne(ctx, bson.M{"session": testUUID})
	if err != nil {
		return bson.NilObjectID, err
	}
	var doc struct {
		ID bson.ObjectID `bson:"_id"`
	}
	if err := coll.FindOne(ctx, bson.M{"_id": res.InsertedID}).Decode(&doc); err != nil {
		return bson.NilObjectID, err
	}
	return doc.ID, nil
}

// withOption returns uri with an additional option.
func withOption(uri, option string) string {
	if strings.Contains(uri, "?") {
		return uri + "&" + option
	}
	_, rest, _ := strings.Cut(uri, "://")
	if !strings.Contains(rest, "/") {
		uri += "/"
	}
	return uri + "?" + option
}

package integration

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestClientBulkWrite writes to two namespaces that hold UUIDs in different representations with
// one command. A client has one registry, so the documents, filters and updates of the other
// namespace are encoded before. The test compares the bytes of the command on every server, and the
// result if the server supports the command.
func TestClientBulkWrite(t *testing.T) {
	s := newServer(t)
	ctx := context30(t)
	sent := newRecorder()
	client := s.collection(uuidrep.Standard, "", sent.option()).Database().Client()
	java, err := bsoncodec.NewRegistry(uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	autoid.Register(java)
	other := uuid.MustParse("ffeeddcc-bbaa-9988-7766-554433221100")
	src := autoid.SourceFunc(func() (any, error) { return other, nil })

	inJava := func(v any) bson.Raw {
		t.Helper()
		b, err := bsoncodec.Marshal(java, v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	asIs := func(v any) any { return v }
	// The same writes for both namespaces: given and generated ids, an update, an upsert, a
	// replacement, a delete.
	writes := func(collection string, encode func(any) any) []mongo.ClientBulkWrite {
		var all []mongo.ClientBulkWrite
		for _, m := range []mongo.ClientWriteModel{
			mongo.NewClientInsertOneModel().SetDocument(encode(bson.D{{Key: "_id", Value: testUUID}, {Key: "refs", Value: []uuid.UUID{testUUID}}})),
			mongo.NewClientInsertOneModel().SetDocument(encode(autoid.Document(src, bson.D{{Key: "n", Value: int32(1)}}))),
			mongo.NewClientUpdateOneModel().SetFilter(encode(bson.D{{Key: "_id", Value: testUUID}})).
				SetUpdate(encode(bson.D{{Key: "$set", Value: bson.D{{Key: "other", Value: &other}}}})),
			mongo.NewClientReplaceOneModel().SetFilter(encode(bson.D{{Key: "_id", Value: other}})).
				SetReplacement(encode(bson.D{{Key: "sub", Value: bson.D{{Key: "u", Value: testUUID}}}})),
			mongo.NewClientDeleteOneModel().SetFilter(encode(bson.D{{Key: "u", Value: testUUID}})),
		} {
			all = append(all, mongo.ClientBulkWrite{Database: s.Database(), Collection: collection, Model: m})
		}
		return all
	}
	res, err := client.BulkWrite(ctx,
		append(writes("standard", asIs), writes("java", func(v any) any { return inJava(v) })...),
		options.ClientBulkWrite().SetVerboseResults(true))

	command := sent.last("bulkWrite")
	namespaces, ops := command.Lookup("nsInfo"), command.Lookup("ops")
	for i, want := range []string{s.Database() + ".standard", s.Database() + ".java"} {
		if got := namespaces.Array().Index(uint(i)).Document().Lookup("ns").StringValue(); got != want {
			t.Errorf("namespace %d is %s, want %s", i, got, want)
		}
	}
	values, valuesErr := ops.Array().Values()
	if valuesErr != nil || len(values) != 10 {
		t.Fatalf("operations %v, %v; bulk write: %v", ops, valuesErr, err)
	}
	// The other UUID has the bytes of the test UUID in reverse order, so each of its halves,
	// reversed, is the other half of the test UUID.
	otherJava := unhex("8899AABBCCDDEEFF0011223344556677")
	for i, bin := range []struct{ test, other bson.Binary }{
		{binary(4, octetsStandard), binary(4, unhex("FFEEDDCCBBAA99887766554433221100"))},
		{binary(3, octetsJava), binary(3, otherJava)},
	} {
		ns := int32(i)
		for j, want := range []bson.D{
			{{Key: "insert", Value: ns}, {Key: "document", Value: bson.D{{Key: "_id", Value: bin.test}, {Key: "refs", Value: bson.A{bin.test}}}}},
			{{Key: "insert", Value: ns}, {Key: "document", Value: bson.D{{Key: "_id", Value: bin.other}, {Key: "n", Value: int32(1)}}}},
			{
				{Key: "update", Value: ns}, {Key: "filter", Value: bson.D{{Key: "_id", Value: bin.test}}},
				{Key: "updateMods", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "other", Value: bin.other}}}}}, {Key: "multi", Value: false},
			},
			{
				{Key: "update", Value: ns}, {Key: "filter", Value: bson.D{{Key: "_id", Value: bin.other}}},
				{Key: "updateMods", Value: bson.D{{Key: "sub", Value: bson.D{{Key: "u", Value: bin.test}}}}}, {Key: "multi", Value: false},
			},
			{{Key: "delete", Value: ns}, {Key: "filter", Value: bson.D{{Key: "u", Value: bin.test}}}, {Key: "multi", Value: false}},
		} {
			raw, err := bson.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			if got := values[i*5+j].Document(); !slices.Equal(got, raw) {
				t.Errorf("operation %d: sent %v, want %v", i*5+j, got, bson.Raw(raw))
			}
		}
	}

	s.Require(t, mongotest.ClientBulkWrite)
	if err != nil {
		t.Fatal(err)
	}
	if res.InsertedCount != 4 || res.MatchedCount != 4 || res.ModifiedCount != 4 || res.DeletedCount != 0 {
		t.Errorf("result %+v", res)
	}
	for name, bin := range map[string]struct{ test, other bson.Binary }{
		"standard": {binary(4, octetsStandard), binary(4, unhex("FFEEDDCCBBAA99887766554433221100"))},
		"java":     {binary(3, octetsJava), binary(3, otherJava)},
	} {
		for _, doc := range s.stored(name) {
			if _, octets := doc.Lookup("_id").Binary(); slices.Equal(octets, bin.test.Data) {
				checkStored(t, doc, bin.test, "_id")
				checkStored(t, doc, bin.test, "refs", "0")
				checkStored(t, doc, bin.other, "other")
			} else {
				checkStored(t, doc, bin.other, "_id")
				checkStored(t, doc, bin.test, "sub", "u")
			}
		}
		if n := len(s.stored(name)); n != 2 {
			t.Errorf("%s: %d documents, want 2", name, n)
		}
	}
}

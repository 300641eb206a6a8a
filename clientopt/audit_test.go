package clientopt_test

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/uuidaudit"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestAudit tests that the audit uses the representation of the connection string, and that the
// monitor of the caller is called as well, whatever the order of the options.
func TestAudit(t *testing.T) {
	insert, err := bson.Marshal(bson.D{
		{Key: "insert", Value: "c"},
		{Key: "documents", Value: bson.A{bson.D{{Key: "u", Value: uuidrep.NewBinary([16]byte{1})}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		uri  string
		want int
	}{
		{"mongodb://localhost/?uuidRepresentation=standard", 0},
		{"mongodb://localhost/?uuidRepresentation=javaLegacy", 1},
		{"mongodb://localhost/", 0},
	} {
		var findings []uuidaudit.Finding
		called := 0
		mine := options.Client().SetMonitor(&event.CommandMonitor{
			Started: func(context.Context, *event.CommandStartedEvent) { called++ },
		})
		audit := clientopt.WithAudit(func(f uuidaudit.Finding) { findings = append(findings, f) })
		for _, opts := range [][]clientopt.Option{
			{audit, clientopt.WithClientOptions(mine)},
			{clientopt.WithClientOptions(mine), audit},
		} {
			findings, called = nil, 0
			made, err := clientopt.ApplyURI(c.uri, opts...)
			if err != nil {
				t.Fatal(err)
			}
			made.Monitor.Started(t.Context(), &event.CommandStartedEvent{
				Command: insert, DatabaseName: "db", CommandName: "insert",
			})
			if len(findings) != c.want || called != 1 {
				t.Errorf("%s: %d findings, the monitor was called %d times; want %d and 1", c.uri, len(findings), called, c.want)
			}
		}
		if m := mine.Monitor; m.Succeeded != nil {
			t.Error("the caller's options were changed")
		}
	}
	// The driver uses the same monitor for the key vault.
	found := 0
	made, err := clientopt.ApplyURI("mongodb://localhost/?uuidRepresentation=javaLegacy",
		clientopt.WithAudit(func(uuidaudit.Finding) { found++ }),
		clientopt.WithClientOptions(options.Client().SetAutoEncryptionOptions(
			options.AutoEncryption().SetKeyVaultNamespace("db.c").SetKmsProviders(map[string]map[string]any{"local": {}}))))
	if err != nil {
		t.Fatal(err)
	}
	made.Monitor.Started(t.Context(), &event.CommandStartedEvent{Command: insert, DatabaseName: "db", CommandName: "insert"})
	if found != 0 {
		t.Errorf("%d findings in the key vault", found)
	}
	for name, audit := range map[string]clientopt.Option{
		"nil report": clientopt.WithAudit(nil),
		"a bad rate": clientopt.WithAudit(func(uuidaudit.Finding) {}, uuidaudit.WithSampleRate(2)),
	} {
		if _, err := clientopt.ApplyURI("mongodb://localhost/", audit); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

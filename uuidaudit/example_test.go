package uuidaudit_test

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/uuidaudit"
	"github.com/bsonids/bsonids/uuidrep"
)

// play gives mon a command as the driver does. In a program, the driver calls the monitor.
func play(mon *event.CommandMonitor, command bson.D) {
	raw, err := bson.Marshal(command)
	if err != nil {
		fmt.Println(err)
		return
	}
	mon.Started(context.Background(), &event.CommandStartedEvent{
		Command: raw, DatabaseName: "shop", CommandName: command[0].Key, RequestID: 1,
	})
}

// A program made a bson.Binary by hand and forgot the subtype.
func ExampleNew() {
	audit, err := uuidaudit.New(uuidrep.Standard, func(f uuidaudit.Finding) { fmt.Println(f) })
	if err != nil {
		fmt.Println(err)
		return
	}
	opts := options.Client().SetMonitor(audit.Monitor(nil)) // WithAudit of package clientopt does this

	u := uuid.New()
	play(opts.Monitor, bson.D{
		{Key: "insert", Value: "orders"},
		{Key: "documents", Value: bson.A{
			bson.D{{Key: "_id", Value: uuidrep.NewBinary(u)}, {Key: "customer", Value: bson.Binary{Data: u[:]}}},
			bson.D{{Key: "_id", Value: uuidrep.NewBinary(uuid.New())}, {Key: "customer", Value: bson.Binary{Data: u[:]}}},
		}},
	})
	fmt.Println(audit.Missed(), "replies were missed")
	// Output:
	// shop.orders: insert: document: *.customer: 2 16-byte binary of subtype 0
	// 0 replies were missed
}

// A filter by text matches no binary value.
func ExampleWithText() {
	audit, err := uuidaudit.New(uuidrep.Standard, func(f uuidaudit.Finding) { fmt.Println(f) }, uuidaudit.WithText())
	if err != nil {
		fmt.Println(err)
		return
	}
	play(audit.Monitor(nil), bson.D{
		{Key: "find", Value: "orders"}, {Key: "filter", Value: bson.D{{Key: "customer", Value: uuid.New().String()}}},
	})
	// Output: shop.orders: find: filter: customer: 1 UUID as text
}

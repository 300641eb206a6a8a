// Package pipeline builds the stages of pipelines from parameters of type any. // want package:`driver: `
package pipeline

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type OrderID [16]byte

type Order struct {
	ID       uuid.UUID `bson:"_id"`
	Customer uuid.UUID `bson:"customer"`
}

type Pipeline struct{ stages mongo.Pipeline }

func (p *Pipeline) Match(field string, v any) *Pipeline { // want Match:`parameters .1.`
	p.stages = append(p.stages, bson.D{{Key: "$match", Value: bson.D{{Key: field, Value: v}}}})
	return p
}

func (p *Pipeline) Limit(n int) *Pipeline {
	p.stages = append(p.stages, bson.D{{Key: "$limit", Value: n}})
	return p
}

func in(values ...any) bson.M { return bson.M{"$in": values} } // want in:`parameters .0.`

// audit stores which field was changed, and its text.
func audit(ctx context.Context, coll *mongo.Collection, field string, v any) { // want audit:`parameters .3.`
	coll.InsertOne(ctx, bson.M{"field": field, "value": v})
}

func run(ctx context.Context, coll *mongo.Collection, u uuid.UUID, id OrderID) {
	coll.Aggregate(ctx, new(Pipeline).Match("customer", u[:]).stages)       // want `the bytes of a UUID get into a document`
	coll.Aggregate(ctx, new(Pipeline).Match("customer", u.String()).stages) // want `the text of a UUID`
	coll.Aggregate(ctx, new(Pipeline).Match("customer", id).stages)         // want `refuses OrderID`
	coll.Find(ctx, bson.M{"customer": in(u, u[:])})                         // want `the bytes of a UUID get into a document`

	coll.Aggregate(ctx, new(Pipeline).Match("customer", u).Match("name", u.String()).Limit(3).stages)
	coll.Find(ctx, bson.M{"customer": in(u, u)})
	audit(ctx, coll, "customer", u.String())
}

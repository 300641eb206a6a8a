// Package repo has what other packages store documents with. // want package:`driver: `
package repo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Repo stores values of one type.
type Repo[K comparable, T any] struct { // want Repo:"type parameters .0 1."
	coll *mongo.Collection
}

// New returns a Repo.
func New[K comparable, T any](coll *mongo.Collection) *Repo[K, T] { // want New:"type parameters .0 1."
	return &Repo[K, T]{coll}
}

func (r *Repo[K, T]) Insert(ctx context.Context, v T) error {
	_, err := r.coll.InsertOne(ctx, v)
	return err
}

func (r *Repo[K, T]) Find(ctx context.Context, id K) (T, error) {
	var v T
	err := r.coll.FindOne(ctx, bson.M{"_id": id}).Decode(&v)
	return v, err
}

// Cache stores nothing.
type Cache[T any] struct{ last T }

func (c *Cache[T]) Put(v T) { c.last = v }

// Audited embeds a Repo.
type Audited[T any] struct { // want Audited:"type parameters .0."
	*Repo[string, T]
	log string
}

// Page is a document with documents.
type Page[T any] struct {
	Items []T `bson:"items"`
}

// InsertPage stores a page.
func InsertPage[T any](ctx context.Context, coll *mongo.Collection, items ...T) error { // want InsertPage:"type parameters .0."
	_, err := coll.InsertOne(ctx, Page[T]{items})
	return err
}

// Save stores any document.
func Save(ctx context.Context, coll *mongo.Collection, name string, doc any) error { // want Save:"parameters .3."
	return save(ctx, coll, bson.D{{Key: "$set", Value: doc}})
}

func save(ctx context.Context, coll *mongo.Collection, update any) error { // want save:`parameters .2.`
	_, err := coll.UpdateOne(ctx, bson.D{}, update)
	return err
}

// Log stores nothing.
func Log(doc any) { _ = doc }

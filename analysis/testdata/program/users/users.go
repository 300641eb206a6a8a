// Package users stores documents in a client that it is given. // want package:`connects false, registry false`
package users

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// User is a document.
type User struct {
	ID uuid.UUID
}

// Users stores users.
type Users struct{ coll *mongo.Collection }

// New returns the users of a client.
func New(client *mongo.Client) *Users { return &Users{client.Database("app").Collection("users")} }

// Insert inserts a user.
func (u *Users) Insert(ctx context.Context, user User) error {
	_, err := u.coll.InsertOne(ctx, user)
	return err
}

// Package filtertext looks for UUIDs by their text. // want package:`driver: `
package filtertext

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/uuidrep"
)

type User struct {
	ID   uuid.UUID          `bson:"_id"`
	Team uuidrep.ID[User]   `bson:"team"`
	Name string             `bson:"name"`
	Old  uuidrep.StringUUID `bson:"old"`
}

// A Token has an _id of text.
type Token struct {
	ID   string    `bson:"_id"`
	User uuid.UUID `bson:"user"`
}

type store struct{ users, tokens *mongo.Collection }

func (s *store) find(ctx context.Context, u uuid.UUID, team uuidrep.ID[User], r *http.Request) (user User, err error) {
	s.users.FindOne(ctx, bson.M{"_id": u.String()})     // want `text equals no UUID, which the field filtertext.User.ID is`
	s.users.FindOne(ctx, bson.M{"_id": fmt.Sprint(u)})  // want `text equals no UUID`
	s.users.FindOne(ctx, bson.M{"team": team.String()}) // want `text equals no UUID`
	id := r.PathValue("id")
	err = s.users.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&user) // want `text equals no UUID`
	s.tokens.FindOne(ctx, bson.M{"user": u.String()})                         // want `text equals no UUID, which the field filtertext.Token.User is`
	s.users.FindOne(ctx, bson.M{"old": u})                                    // want `a UUID equals no text, as which the field filtertext.User.Old is stored`

	s.users.FindOne(ctx, bson.M{"_id": u, "name": id, "team": team, "old": u.String()})
	s.users.FindOne(ctx, bson.M{"$or": bson.A{bson.M{"_id": u}, bson.M{"name": u.String()}}})
	return user, err
}

func (s *store) token(ctx context.Context, u uuid.UUID) (token Token, err error) {
	err = s.tokens.FindOne(ctx, bson.M{"_id": u.String()}).Decode(&token)
	return token, err
}

func both(ctx context.Context, db *mongo.Database, u uuid.UUID) {
	db.Collection("any").FindOne(ctx, bson.M{"_id": u.String()}) // the package has both
}

// Package updatetext has the text of UUIDs in lists and in updates. // want package:`driver: `
package updatetext

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type Team struct {
	ID      uuid.UUID   `bson:"_id"`
	Owner   uuid.UUID   `bson:"owner"`
	Members []uuid.UUID `bson:"members"`
	Lead    Lead        `bson:"lead"`
}

type Lead struct {
	User uuid.UUID `bson:"user"`
	Name string    `bson:"username"`
}

func update(ctx context.Context, teams *mongo.Collection, u uuid.UUID, names []string) error {
	text := u.String()
	teams.UpdateOne(ctx, bson.M{"_id": u}, bson.M{"$set": bson.M{"owner": u.String()}})                                 // want `text of a UUID`
	teams.UpdateOne(ctx, bson.M{"_id": u}, bson.D{{"$push", bson.D{{"members", text}}}})                                // want `text of a UUID`
	teams.UpdateOne(ctx, bson.M{"_id": u}, bson.M{"$addToSet": bson.M{"members": bson.M{"$each": bson.A{u.String()}}}}) // want `text of a UUID`
	teams.DeleteMany(ctx, bson.M{"_id": bson.M{"$in": []string{u.String()}}})                                           // want `text of a UUID`
	teams.DeleteMany(ctx, bson.M{"_id": bson.M{"$in": bson.A{u, text}}})                                                // want `text of a UUID`
	filter := bson.M{}
	filter["owner"] = u.String() // want `text of a UUID`
	teams.CountDocuments(ctx, filter)

	teams.UpdateOne(ctx, bson.M{"_id": u, "$comment": text}, bson.M{"$set": bson.M{"owner": u}, "$push": bson.M{"members": u, "log": text}})
	return nil
}

// The result is decoded into a struct, so that the filter's keys are those of its fields.
func known(ctx context.Context, teams *mongo.Collection, u uuid.UUID, names []string) (all []Team, err error) {
	cursor, err := teams.Find(ctx, bson.M{"members": bson.M{"$in": names}}) // want `text equals no UUID, which the field updatetext.Team.Members is`
	if err != nil {
		return nil, err
	}
	teams.Find(ctx, bson.M{"lead.user": names[0], "lead.username": names[0]})                                      // want `text equals no UUID`
	teams.UpdateMany(ctx, bson.M{"owner": bson.M{"$ne": names[0]}}, bson.M{"$set": bson.M{"lead.user": names[0]}}) // want `text equals no UUID` `text equals no UUID`
	teams.UpdateMany(ctx, bson.M{"owner": bson.M{"$ne": u}}, bson.M{"$set": bson.M{"lead.username": names[0]}})
	return all, cursor.All(ctx, &all)
}

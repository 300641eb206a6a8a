// Package uuidrep holds the representations of a UUID in BSON.
package uuidrep

import (
	_ "github.com/google/uuid"
	_ "go.mongodb.org/mongo-driver/v2/bson"
	_ "go.mongodb.org/mongo-driver/v2/mongo"
)

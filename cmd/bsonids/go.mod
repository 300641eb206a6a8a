module github.com/bsonids/bsonids/cmd/bsonids

go 1.25.0

require (
	github.com/bsonids/bsonids v0.0.0
	github.com/google/uuid v1.6.0
	go.mongodb.org/mongo-driver/v2 v2.9.3
)

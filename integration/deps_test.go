package integration

import (
	_ "github.com/FerretDB/FerretDB/ferretdb"
	_ "github.com/Shopify/toxiproxy/v2"
	_ "github.com/bsonids/bsonids/uuidrep"
	_ "github.com/gofrs/uuid/v5"
	_ "github.com/google/uuid"
	_ "github.com/testcontainers/testcontainers-go"
	_ "github.com/testcontainers/testcontainers-go/modules/mongodb"
	_ "go.mongodb.org/mongo-driver/v2/mongo"
	_ "go.uber.org/goleak"
)

package bench

import (
	_ "github.com/bsonids/bsonids/integration"
	_ "github.com/bsonids/bsonids/uuidrep"
	_ "github.com/gofrs/uuid/v5"
)

// Package onlyv1 uses version 1 of the driver in a module that requires version 2.
package onlyv1

import "go.mongodb.org/mongo-driver/bson/bsontype" // want `version 1 of the driver beside version 2`

var _ bsontype.Type

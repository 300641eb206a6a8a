// Command bsonids shows what UUIDs a MongoDB deployment holds, and converts them.
package main

import (
	_ "github.com/bsonids/bsonids/uuidrep"
)

func main() {}

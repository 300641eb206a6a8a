// Command bsonids shows what UUIDs a MongoDB deployment holds, and converts them to standard, binary subtype 4.
package main

import (
	"os"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }

// Command program connects in one package and stores UUIDs in another. // want package:`connects true, registry false, documents .example.com/shop/program/users.User.`
package main

import (
	"context"

	"example.com/shop/program/db" // want `no client of this program has a registry, and documents hold UUIDs \(users.User\)`
	"example.com/shop/program/users"
)

func main() {
	client, err := db.Connect("mongodb://localhost")
	if err != nil {
		panic(err)
	}
	users.New(client).Insert(context.Background(), users.User{})
}

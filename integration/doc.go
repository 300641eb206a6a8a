// Package integration tests bsonids against real servers.
package integration

// Package examples has examples that need a server, with what a server inside the process answered:
//
//	go test -v ./integration/examples
package examples

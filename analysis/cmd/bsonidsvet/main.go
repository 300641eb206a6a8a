// Command bsonidsvet finds UUIDs that reach MongoDB in a form that other drivers do not read: see
// package analysis. It runs by itself, with -fix to apply the fixes, and within go vet:
//
//	bsonidsvet [-fix] ./...
//	go vet -vettool=$(which bsonidsvet) ./...
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/bsonids/bsonids/analysis"
)

func main() { multichecker.Main(analysis.Analyzer) }

// Command bsonidsvet finds UUIDs that reach MongoDB in a form that other drivers do not read: see
// package analysis. It runs by itself, with -fix to apply the fixes, and within go vet:
//
//	bsonidsvet [-fix] [-registered import/path.Type,…] ./...
//	go vet -vettool=$(which bsonidsvet) [-registered import/path.Type,…] ./...
//
// The go command keeps the result of vet for a package that has not changed, although the registry that another
// package of the module makes may have. The command by itself looks again.
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/bsonids/bsonids/analysis"
)

func main() { singlechecker.Main(analysis.Analyzer) }

// Package analysis finds, in Go programs that use the MongoDB driver, the UUIDs that no codec of
// package bsoncodec sees or that its registries refuse. It is an analyzer for go vet, for
// golangci-lint, and for the command bsonidsvet.
//
// Each finding is of one of these categories:
//
//	octets          the bytes of a UUID in a bson.Binary of subtype 0 or 3, or in a []byte of a document; the
//	                text of a UUID in a filter or an update
//	representation  a UUID in a filter or an update for a field that is stored in another representation, or as
//	                text; a range of ids in a representation that does not keep their order
//	registry        a function of the driver that does not use the registry of the client: bson.Marshal
//	                and its kin, RawValue.Unmarshal, the metadata of GridFS; and a function or a generic type
//	                of the program that passes its arguments on to them
//	unregistered    a type that a registry of bsoncodec refuses: of kind [16]byte and not registered; a struct
//	                whose UUID the driver does not store, or stores as a document; a struct that is stored as
//	                a field that it embeds, without the others
//	client          uuidRepresentation in a connection string that the driver ignores; SetRegistry after
//	                clientopt.ApplyURI; a client without a registry whose documents hold UUIDs
//	codec           a hand-written codec for UUIDs, and what it does not check: subtype, length
//	id              an _id that an autoid.Collection cannot fill in, because it has no omitempty, or is
//	                of another type than the ids of the source, or has the key id; an insert into the
//	                collection that it embeds
//	assertion       a type assertion, or a field of kind string, that only version 1 of the driver, a client
//	                without a registry of bsoncodec, or a collection of package autoid serves
//	v1              what is left of version 1 of the driver: imports, and methods of its marshalling
//	                interfaces, which version 2 ignores
//
// Documents are the structs with bson tags, in packages that import no driver, too, and the types that reach
// the driver: as arguments of its methods, through functions that pass on a parameter of type any or put it into a
// document, and as type arguments of generic functions and types, Repo[User] for instance, of other packages too.
// How the fields of a collection are stored is told by the structs that the package inserts into it, or decodes
// what it finds there into.
//
// A client without a registry is reported if this is certain: in a package that connects, takes the
// collection from that client and stores a UUID there; and in package main, if no package of the program
// gives anything a registry.
//
// Fixes change both methods of a type that marshals itself, or none, and no generated file.
//
// A type that another package of the module registers, with RegistryBuilder.RegisterUUIDType for instance, is found in
// the text of the module. If the text registers a type and does not show which one, none is reported. A type that
// another module registers is made known by the flag -registered or by a line //bsonids:registered in the doc comment
// of its declaration. The options of clients, and their representations, are looked for in the text of the module, too.
package analysis

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// Analyzer reports UUIDs that reach MongoDB past the codecs. Its flag -registered takes the types
// that are registered elsewhere, as import/path.Type, joined by commas.
var Analyzer = &analysis.Analyzer{
	Name:      "bsonids",
	Doc:       "report UUIDs that are stored in a form that other drivers do not read as a UUID",
	URL:       "https://pkg.go.dev/github.com/bsonids/bsonids/analysis",
	Requires:  []*analysis.Analyzer{inspect.Analyzer},
	FactTypes: []analysis.Fact{new(registeredFact), new(idsFact), new(reachFact), new(driverFact)},
	Run:       run,
}

var registeredFlag string

func init() {
	Analyzer.Flags.StringVar(&registeredFlag, "registered", "",
		"types that are registered elsewhere: import/path.Type, joined by commas")
}

func run(pass *analysis.Pass) (any, error) {
	c := &checker{
		Pass:       pass,
		inspect:    pass.ResultOf[inspect.Analyzer].(*inspector.Inspector),
		registered: registered{},
		literals:   map[*ast.CompositeLit]bool{},
		stored:     map[string]bool{},
		refused:    map[token.Pos]bool{},
	}
	for name := range strings.SplitSeq(registeredFlag, ",") {
		c.registered.add(strings.TrimSpace(name), false)
	}
	c.findDecls()
	c.exportRegistered()
	c.exportIDs()
	c.findRegistered()
	if c.usesDriver() {
		c.findDocuments()
		if fact := c.findDriver(); fact != nil {
			c.ExportPackageFact(fact)
			c.findClients(fact)
		}
	}
	c.findUnregistered() // models are often in packages that import no driver
	c.findDeclared()
	if len(c.documents) > 0 {
		c.findReached()
	}
	c.findOctets()
	c.findPassedOn()
	switch {
	case c.imports(driver) || c.imports(driver+"/"):
		c.findBypasses()
		c.findMistakes()
		c.findVersion1()
	case (c.imports(driver1) || c.imports(driver1+"/")) && c.usesVersion2():
		c.findVersion1()
	}
	return nil, nil
}

// A checker looks at one package.
type checker struct {
	*analysis.Pass
	inspect    *inspector.Inspector
	registered registered // by this package and by the flag
	decls      map[*types.Func]*ast.FuncDecl
	flowOnce   *flow
	documents  []document
	literals   map[*ast.CompositeLit]bool // in documents, of maps and slices of any
	stored     map[string]bool            // the structs in documents, by import path and name
	fields     map[types.Object]ast.Node  // their declarations in the package
	refused    map[token.Pos]bool         // what unregisteredAt has reported

	reach *reach // nil if the package does not use the driver

	allRegistered bool // a registry of this package accepts types that are not registered
}

// The import path of the driver. That of version 1 is it without the last element.
const (
	driver  = "go.mongodb.org/mongo-driver/v2"
	driver1 = "go.mongodb.org/mongo-driver"
)

// imports reports whether the package imports path or, if path ends in a slash, a package below it.
func (c *checker) imports(path string) bool {
	for _, p := range c.Pkg.Imports() {
		if p.Path() == path || strings.HasSuffix(path, "/") && strings.HasPrefix(p.Path(), path) {
			return true
		}
	}
	return false
}

func (c *checker) report(n ast.Node, category, message string, fixes ...analysis.SuggestedFix) {
	c.Report(analysis.Diagnostic{
		Pos: n.Pos(), End: n.End(), Category: category, Message: message, SuggestedFixes: fixes,
	})
}

// visit calls f for each node of the type of sample, with the nodes around it, outermost first.
func (c *checker) visit(sample ast.Node, f func(n ast.Node, stack []ast.Node)) {
	c.inspect.WithStack([]ast.Node{sample}, func(n ast.Node, push bool, stack []ast.Node) bool {
		if push {
			f(n, stack[:len(stack)-1])
		}
		return true
	})
}

// bsonTagged reports whether a field's tag has the key bson.
func bsonTagged(tag string) bool {
	_, ok := reflect.StructTag(tag).Lookup("bson")
	return ok
}

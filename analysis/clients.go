package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// driverFact is exported for each package that uses the driver, itself or through what it imports, and says
// what the package and its imports do with clients.
type driverFact struct {
	Connects bool     // mongo.Connect is called
	Registry bool     // a client, a database or a collection is given a registry
	Reached  []string // a document of each package that reaches the driver and holds a UUID, as import/path.Type
	Tagged   []string // the same for structs with bson tags
}

func (*driverFact) AFact() {}
func (f *driverFact) String() string {
	return fmt.Sprintf("driver: connects %v, registry %v, documents %v %v", f.Connects, f.Registry, f.Reached, f.Tagged)
}

// usesDriver reports whether the package imports the driver, this library, or a package that does.
func (c *checker) usesDriver() bool {
	return !isWithin(c.Pkg, driver) && slices.ContainsFunc(c.Pkg.Imports(), func(p *types.Package) bool {
		return isWithin(p, driver) || isWithin(p, library) || c.ImportPackageFact(p, new(driverFact))
	})
}

// findDriver returns the fact of a package that uses the driver, or nil for a package of the driver or of
// this library.
func (c *checker) findDriver() *driverFact {
	if isWithin(c.Pkg, driver) || isWithin(c.Pkg, library) && c.Pkg.Name() != "main" {
		return nil
	}
	all := new(driverFact)
	for _, p := range c.Pkg.Imports() {
		f := new(driverFact)
		if c.ImportPackageFact(p, f) {
			all.Connects = all.Connects || f.Connects
			all.Registry = all.Registry || f.Registry
			all.Reached = append(all.Reached, f.Reached...)
			all.Tagged = append(all.Tagged, f.Tagged...)
		}
	}
	for _, obj := range c.TypesInfo.Uses {
		all.Connects = all.Connects || isConnect(obj)
		all.Registry = all.Registry || givesRegistry(obj)
	}
	for _, doc := range c.documents {
		if holds(doc.t, isUUID) {
			all.Reached = append(all.Reached, typeString(doc.t))
			break
		}
	}
	for _, name := range c.Pkg.Scope().Names() {
		obj, ok := c.Pkg.Scope().Lookup(name).(*types.TypeName)
		if ok && !obj.IsAlias() && isDocument(obj.Type()) && holds(obj.Type(), isUUID) {
			all.Tagged = append(all.Tagged, typeString(obj.Type()))
			break
		}
	}
	for _, list := range []*[]string{&all.Reached, &all.Tagged} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return all
}

func isWithin(pkg *types.Package, module string) bool {
	return pkg != nil && strings.HasPrefix(pkg.Path()+"/", module+"/")
}

// typeString returns a type as import/path.Type, without pointers.
func typeString(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		return typeString(p.Elem())
	}
	return types.TypeString(t, nil)
}

func isConnect(obj types.Object) bool {
	return obj.Name() == "Connect" && obj.Pkg() != nil && obj.Pkg().Path() == driver+"/mongo"
}

// givesRegistry reports whether code that uses obj can give a registry to a client, to a database or a
// collection, or encode documents with one.
func givesRegistry(obj types.Object) bool {
	switch pkg := obj.Pkg(); {
	case pkg == nil:
		return false
	case pkg.Path() == driver+"/mongo/options":
		return obj.Name() == "SetRegistry" || obj.Name() == "Registry"
	case pkg.Path() == driver+"/bson":
		return obj.Name() == "SetRegistry" || obj.Name() == "NewRegistry"
	case pkg.Path() == clientopt:
		return obj.Name() != "Check"
	}
	return obj.Pkg().Path() == library+"/bsoncodec" || obj.Pkg().Path() == library+"/mixedrep"
}

// findClients reports a client that no registry is given, if documents with UUIDs go through it. Nothing is
// reported if this package or one that it imports gives any client a registry.
func (c *checker) findClients(fact *driverFact) {
	if fact == nil || fact.Registry || !fact.Connects {
		return
	}
	reported := map[ast.Node]bool{}
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok || !isNamed(c.typeOf(sel.X), driver+"/mongo", "Collection") {
			return
		}
		for _, arg := range call.Args {
			if !c.holdsUUID(arg) {
				continue
			}
			for _, connect := range c.connections(sel.X) {
				if !reported[connect] {
					reported[connect] = true
					c.client(connect, "this client has no registry, and a document of it holds a UUID ("+path.Base(typeString(c.typeOf(arg)))+")")
				}
			}
		}
	})
	documents := fact.Reached
	for _, name := range fact.Tagged {
		if c.Module != nil && c.Module.Path != "" && strings.HasPrefix(strings.TrimLeft(name, "[]*")+"/", c.Module.Path+"/") {
			documents = append(documents, name)
		}
	}
	if len(reported) > 0 || len(documents) == 0 || c.Pkg.Name() != "main" || strings.HasSuffix(c.Pkg.Path(), ".test") {
		return
	}
	if at := c.connector(); at != nil {
		c.client(at, "no client of this program has a registry, and documents hold UUIDs ("+path.Base(documents[0])+")")
	}
}

func (c *checker) client(at ast.Node, what string) {
	told := false // that the driver ignores uuidRepresentation
	ast.Inspect(at, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && strings.Contains(strings.ToLower(c.constant(e)), "uuidrepresentation=") {
			told = true
		}
		return !told
	})
	if !told {
		c.report(at, "client", what+", which the driver stores as binary subtype 0 and does not read from subtype 4: use clientopt.Connect")
	}
}

// connector returns the first call of mongo.Connect or, if there is none, the import of a package that
// connects.
func (c *checker) connector() ast.Node {
	var found ast.Node
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		if f := typeutil.Callee(c.TypesInfo, n.(*ast.CallExpr)); found == nil && f != nil && isConnect(f) {
			found = n
		}
	})
	for _, file := range c.Files {
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			for _, p := range c.Pkg.Imports() {
				f := new(driverFact)
				if err == nil && found == nil && p.Path() == name && c.ImportPackageFact(p, f) && f.Connects {
					found = spec
				}
			}
		}
	}
	return found
}

// connections returns the calls of mongo.Connect that a collection comes from, if all of them are in this
// package and none is given a registry.
func (c *checker) connections(coll ast.Expr) []ast.Node {
	var found []ast.Node
	clients := c.through(c.through([]ast.Expr{coll}, "Database", "Collection"), "Client", "Database")
	for _, client := range clients {
		for _, e := range c.origins(client) {
			call, ok := e.(*ast.CallExpr)
			if !ok || call.Ellipsis.IsValid() || !c.calls(call, driver+"/mongo", "Connect") {
				return nil
			}
			for _, arg := range call.Args {
				if !c.isMade(arg, map[*types.Var]bool{}) {
					return nil
				}
			}
			found = append(found, call)
		}
	}
	return found
}

// through returns the receivers of the calls of a method that expressions come from: db for
// db.Collection("name"). It returns nil if one of them comes from elsewhere or is given options.
func (c *checker) through(es []ast.Expr, recv, method string) []ast.Expr {
	var found []ast.Expr
	for _, e := range es {
		for _, from := range c.origins(e) {
			call, ok := from.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return nil
			}
			sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != method || !isNamed(c.typeOf(sel.X), driver+"/mongo", recv) {
				return nil
			}
			found = append(found, sel.X)
		}
	}
	return found
}

// isMade reports whether client options are made in this package or by a function of another one, and are
// no parameter. The variables in seen are looked at already.
func (c *checker) isMade(opts ast.Expr, seen map[*types.Var]bool) bool {
	origins := c.origins(opts)
	for _, e := range origins {
		switch root := rootOf(e).(type) {
		case *ast.CallExpr, *ast.UnaryExpr, *ast.CompositeLit:
		case *ast.Ident:
			if _, pkg := c.TypesInfo.Uses[root].(*types.PkgName); pkg {
				continue
			}
			v := c.variable(root)
			if v == nil || root == e {
				return false
			}
			if !seen[v] {
				seen[v] = true
				if !c.isMade(root, seen) {
					return false
				}
			}
		default:
			return false
		}
	}
	return len(origins) > 0
}

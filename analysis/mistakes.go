package analysis

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// The packages of this repository that the checks know.
const (
	library   = "github.com/bsonids/bsonids"
	clientopt = library + "/clientopt"
	autoid    = library + "/autoid"
)

// findMistakes reports calls and literals that compile, return no error, and do not do what they say.
func (c *checker) findMistakes() {
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		f, ok := typeutil.Callee(c.TypesInfo, call).(*types.Func)
		if !ok || f.Pkg() == nil {
			return
		}
		recv := f.Signature().Recv()
		switch {
		case recv == nil:
			if f.Pkg().Path() == autoid {
				c.insert(call, f)
			}
		case isNamed(recv.Type(), driver+"/mongo/options", "ClientOptions"):
			c.clientOption(call, f.Name())
		case isNamed(recv.Type(), autoid, "Collection"):
			c.insert(call, f)
		case isNamed(recv.Type(), driver+"/mongo", "Collection"):
			c.insertPast(call, f)
		case isNamed(recv.Type(), library+"/uuidgen", "Range"):
			c.filterOfRange(call, f)
		}
	})
	c.findBounds()
	c.findCodecs()
	c.findAssertions()
	c.findTextIDs()
	c.findFilters()
}

// clientOption reports a connection string whose uuidRepresentation the driver ignores, and a registry
// that takes the place of the one that clientopt made.
func (c *checker) clientOption(call *ast.CallExpr, name string) {
	switch name {
	case "ApplyURI":
		if len(call.Args) == 1 && strings.Contains(strings.ToLower(c.constant(call.Args[0])), "uuidrepresentation=") {
			c.report(call.Args[0], "client", "the driver ignores uuidRepresentation: use clientopt.Connect, or clientopt.ApplyURI in place of options.Client().ApplyURI")
		}
	case "SetRegistry":
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && c.madeByClientopt(sel.X) {
			c.report(sel.Sel, "client", "SetRegistry replaces the registry that clientopt.ApplyURI made from uuidRepresentation: use clientopt.WithRegistry")
		}
	}
}

// constant returns the value of a constant string, the constant parts of a concatenation, or "".
func (c *checker) constant(e ast.Expr) string {
	if v := c.TypesInfo.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		return c.constant(e.X) + c.constant(e.Y)
	case *ast.CallExpr: // fmt.Sprintf
		if len(e.Args) > 0 {
			return c.constant(e.Args[0])
		}
	}
	return ""
}

// madeByClientopt reports whether client options come from clientopt.ApplyURI, in one chain of calls or
// through a variable.
func (c *checker) madeByClientopt(e ast.Expr) bool {
	return slices.ContainsFunc(c.origins(rootOf(e)), func(e ast.Expr) bool { return c.calls(e, clientopt, "ApplyURI") })
}

// calls reports whether an expression is a call of a function.
func (c *checker) calls(e ast.Expr, path, name string) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	return c.callsPackage(call, path) && typeutil.Callee(c.TypesInfo, call).Name() == name
}

// callsPackage reports whether a call is one of a function or a method of a package.
func (c *checker) callsPackage(call *ast.CallExpr, path string) bool {
	f, ok := typeutil.Callee(c.TypesInfo, call).(*types.Func)
	return ok && f.Pkg() != nil && f.Pkg().Path() == path
}

// names reports whether the package uses a name.
func (c *checker) names(name string) bool {
	for id := range c.TypesInfo.Uses {
		if id.Name == name {
			return true
		}
	}
	return false
}

// findAssertions reports type assertions that hold with version 1 of the driver, or without a registry
// of bsoncodec, and panic or fail with them.
func (c *checker) findAssertions() {
	decoded := c.decodedVariables()
	c.visit((*ast.TypeAssertExpr)(nil), func(n ast.Node, _ []ast.Node) {
		assert := n.(*ast.TypeAssertExpr)
		if assert.Type == nil {
			return
		}
		target := c.TypesInfo.TypeOf(assert.Type)
		switch x := ast.Unparen(assert.X).(type) {
		case *ast.SelectorExpr:
			if x.Sel.Name == "InsertedID" && isBSON(target, "Binary") && isNamed(c.TypesInfo.TypeOf(x.X), driver+"/mongo", "InsertOneResult") {
				c.report(assert, "assertion", "with a registry of bsoncodec InsertedID is a UUID, and no bson.Binary")
			}
			if x.Sel.Name == "UpsertedID" {
				c.upserted(assert, target, x.X)
			}
		case *ast.IndexExpr:
			if sel, ok := ast.Unparen(x.X).(*ast.SelectorExpr); ok && sel.Sel.Name == "UpsertedIDs" {
				c.upserted(assert, target, sel.X)
			}
			id, ok := ast.Unparen(x.X).(*ast.Ident)
			if ok && isBSON(target, "M") && decoded[c.TypesInfo.ObjectOf(id)] && !c.isSet("DefaultDocumentM") {
				c.report(assert, "assertion", "version 2 of the driver decodes a document within a document into a bson.D: "+
					"assert that, or set DefaultDocumentM in the BSON options of the client")
			}
		}
	})
}

// upserted reports the assertion that the id of an upsert is a UUID. A collection of package autoid returns it so.
func (c *checker) upserted(assert *ast.TypeAssertExpr, target types.Type, result ast.Expr) {
	if !c.isUUIDType(target) {
		return
	}
	for _, e := range c.origins(result) {
		call, ok := e.(*ast.CallExpr)
		if !ok {
			return
		}
		if recv, _ := c.methodOf(call); recv == nil || !isNamed(c.typeOf(recv), driver+"/mongo", "Collection") {
			return
		}
	}
	if cur, ok := c.inspect.Root().FindNode(assert); ok {
		for body := range cur.Enclosing((*ast.FuncDecl)(nil)) {
			for other := range body.Preorder((*ast.TypeAssertExpr)(nil)) {
				t := other.Node().(*ast.TypeAssertExpr)
				if t.Type != nil && isBSON(c.typeOf(t.Type), "Binary") && types.ExprString(t.X) == types.ExprString(assert.X) {
					return // it takes both
				}
			}
		}
	}
	c.report(assert, "assertion", "the driver decodes the id of an upsert without the registry of the client, so that a UUID is a bson.Binary: "+
		"use autoid.Collection, or bsoncodec.DecodeNative")
}

// decodedVariables returns the variables of type bson.M whose address is given to a method that decodes.
func (c *checker) decodedVariables() map[types.Object]bool {
	found := make(map[types.Object]bool)
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Decode" && sel.Sel.Name != "Unmarshal" {
			return
		}
		for _, arg := range call.Args {
			u, ok := ast.Unparen(arg).(*ast.UnaryExpr)
			if !ok || u.Op != token.AND || !isBSON(c.TypesInfo.TypeOf(u.X), "M") {
				continue
			}
			if id, ok := ast.Unparen(u.X).(*ast.Ident); ok {
				found[c.TypesInfo.ObjectOf(id)] = true
			}
		}
	})
	return found
}

// findTextIDs reports fields of kind string that an ObjectID is decoded into: version 2 of the driver
// refuses that unless the client says otherwise. The package shows what the field is by parsing it.
func (c *checker) findTextIDs() {
	seen := make(map[types.Object]bool)
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		if !c.calls(call, driver+"/bson", "ObjectIDFromHex") || len(call.Args) != 1 {
			return
		}
		sel, ok := ast.Unparen(call.Args[0]).(*ast.SelectorExpr)
		if !ok {
			return
		}
		s := c.TypesInfo.Selections[sel]
		if s == nil || s.Kind() != types.FieldVal || seen[s.Obj()] {
			return
		}
		seen[s.Obj()] = true
		st := structOf(s.Recv())
		for i := 0; st != nil && i < st.NumFields(); i++ {
			if key, _, _ := strings.Cut(reflect.StructTag(st.Tag(i)).Get("bson"), ","); st.Field(i) == s.Obj() && key == "_id" && !c.isSet("ObjectIDAsHexString") {
				c.report(call, "assertion", "version 2 of the driver does not decode an ObjectID into a string: "+
					"make the field a bson.ObjectID, or set ObjectIDAsHexString in the BSON options of the client")
			}
		}
	})
}

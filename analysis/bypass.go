package analysis

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// The functions of package bson that use the driver's own registry, and which argument they encode
// or decode.
var withoutRegistry = map[string]int{
	"Marshal": 0, "MarshalExtJSON": 0, "MarshalExtJSONIndent": 0, "MarshalValue": 0,
	"Unmarshal": 1, "UnmarshalExtJSON": 2, "UnmarshalValue": 2,
}

// findBypasses reports calls that encode or decode a UUID without the registry of the client.
func (c *checker) findBypasses() {
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, stack []ast.Node) {
		call := n.(*ast.CallExpr)
		f, ok := typeutil.Callee(c.TypesInfo, call).(*types.Func)
		if !ok || f.Pkg() == nil {
			return
		}
		recv := f.Signature().Recv()
		switch {
		case f.Pkg().Path() == driver+"/bson" && recv == nil:
			if i, ok := withoutRegistry[f.Name()]; ok && i < len(call.Args) && c.holdsUUID(call.Args[i]) {
				c.report(call, "registry", fmt.Sprintf("bson.%s does not use the registry of the client, "+
					"and the value holds a UUID: use bsoncodec.%s", f.Name(), replacement(f.Name())))
			}
		case recv != nil && f.Name() == "Unmarshal" && isBSON(recv.Type(), "RawValue"):
			if len(call.Args) == 1 && c.holdsUUID(call.Args[0]) {
				c.report(call, "registry", "RawValue.Unmarshal does not use the registry of the client, "+
					"and the value holds a UUID: use bsoncodec.UnmarshalValue")
			}
		case recv != nil && f.Name() == "SetMetadata" && isNamed(recv.Type(), driver+"/mongo/options", "GridFSUploadOptionsBuilder"):
			sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
			if ok && len(call.Args) == 1 && c.holdsUUID(call.Args[0]) && !c.setsRegistry(sel.X, stack) {
				c.report(call, "registry", "the metadata of GridFS do not use the registry of the client, "+
					"and the value holds a UUID: call SetRegistry of the upload options")
			}
		}
	})
}

func replacement(name string) string {
	if name == "MarshalExtJSONIndent" {
		return "MarshalExtJSON"
	}
	return name
}

// setsRegistry reports whether SetRegistry is called in the chain of calls around or before a call
// on the builder, or anywhere on the variable that holds it.
func (c *checker) setsRegistry(builder ast.Expr, stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- { // b.SetMetadata(v).SetRegistry(reg)
		if sel, ok := stack[i].(*ast.SelectorExpr); ok && sel.Sel.Name == "SetRegistry" {
			return true
		}
	}
	variable := c.assignedTo(stack)
	for e := ast.Unparen(builder); ; { // b.SetRegistry(reg).SetMetadata(v)
		call, ok := e.(*ast.CallExpr)
		if !ok {
			if id, ok := e.(*ast.Ident); ok {
				variable = c.TypesInfo.ObjectOf(id)
			}
			break
		}
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok {
			break
		}
		if sel.Sel.Name == "SetRegistry" {
			return true
		}
		e = ast.Unparen(sel.X)
	}
	if variable == nil {
		return false
	}
	found := false
	c.visit((*ast.SelectorExpr)(nil), func(n ast.Node, _ []ast.Node) {
		sel := n.(*ast.SelectorExpr)
		id, ok := rootOf(sel.X).(*ast.Ident)
		found = found || ok && sel.Sel.Name == "SetRegistry" && c.TypesInfo.ObjectOf(id) == variable
	})
	return found
}

// assignedTo returns the variable that the value of the innermost expression is assigned to.
func (c *checker) assignedTo(stack []ast.Node) types.Object {
	for i := len(stack) - 1; i >= 0; i-- {
		if a, ok := stack[i].(*ast.AssignStmt); ok && len(a.Lhs) == 1 {
			if id, ok := a.Lhs[0].(*ast.Ident); ok {
				return c.TypesInfo.ObjectOf(id)
			}
		}
	}
	return nil
}

// rootOf returns what the first call of a chain of calls is made on.
func rootOf(e ast.Expr) ast.Expr {
	for {
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok {
			return ast.Unparen(e)
		}
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok {
			return call
		}
		e = sel.X
	}
}

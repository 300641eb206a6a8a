package analysis

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// isUploadedPastRegistry reports whether the upload options of a chain of calls, with metadata and without a registry,
// reach an upload of the driver's bucket. The bucket of clientopt.GridFS gives them a registry. If the package does not
// show the uploads that they reach, they reach the driver's only if the module does not name clientopt's.
func (c *checker) isUploadedPastRegistry(call *ast.CallExpr) bool {
	past, known := false, false
	seen := map[any]bool{}
	var follow func(cur inspector.Cursor)
	uses := func(obj types.Object) {
		if obj == nil || seen[obj] {
			return
		}
		seen[obj] = true
		for cur := range c.inspect.Root().Preorder((*ast.Ident)(nil)) {
			if id := cur.Node().(*ast.Ident); c.TypesInfo.Uses[id] == obj {
				follow(cur)
			}
		}
	}
	follow = func(cur inspector.Cursor) {
		for ; ; cur = cur.Parent() {
			switch n := cur.Parent().Node().(type) {
			case *ast.CallExpr:
				f, ok := typeutil.Callee(c.TypesInfo, n).(*types.Func)
				if !ok || n.Fun == cur.Node() {
					continue // append, or a call of the chain
				}
				switch sel, _ := ast.Unparen(n.Fun).(*ast.SelectorExpr); {
				case sel == nil || !strings.Contains(f.Name(), "Upload"):
				case isNamed(c.typeOf(sel.X), clientopt, "GridFSBucket"):
					known = true
				case isNamed(c.typeOf(sel.X), driver+"/mongo", "GridFSBucket"):
					past, known = true, true
				}
				return
			case *ast.AssignStmt:
				for i, rhs := range n.Rhs {
					if rhs == cur.Node() && len(n.Lhs) == len(n.Rhs) {
						if v := c.variable(n.Lhs[i]); v != nil {
							uses(v)
						}
					}
				}
				return
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if value == cur.Node() && i < len(n.Names) {
						uses(c.TypesInfo.Defs[n.Names[i]])
					}
				}
				return
			case *ast.ReturnStmt:
				for around := range cur.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
					if decl, ok := around.Node().(*ast.FuncDecl); ok {
						uses(c.TypesInfo.Defs[decl.Name])
					}
					break
				}
				return
			case *ast.SelectorExpr, *ast.ParenExpr, *ast.CompositeLit, *ast.StarExpr, *ast.UnaryExpr: // s.opts, or a method of the chain
			case *ast.KeyValueExpr:
				if v := c.variable(n.Key); v != nil && v.IsField() {
					uses(v)
				}
			default:
				return
			}
		}
	}
	if cur, ok := c.inspect.Root().FindNode(call); ok {
		follow(cur)
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if id, ok := rootOf(sel.X).(*ast.Ident); ok { // opts.SetMetadata(…)
			if v := c.variable(id); v != nil {
				uses(v)
			}
		}
	}
	return past || !known && !c.isSet("GridFS(")
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

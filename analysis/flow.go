package analysis

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"
)

// A flow tells what the variables and the fields of a package are given.
type flow struct {
	values  map[types.Object][]ast.Expr
	unknown map[types.Object]bool // is also given what no expression of the package shows
}

// flow reads all assignments of the package. Of x, err := f() it is the call, for x.
func (c *checker) flow() *flow {
	if c.flowOnce != nil {
		return c.flowOnce
	}
	f := &flow{map[types.Object][]ast.Expr{}, map[types.Object]bool{}}
	assign := func(lhs, rhs ast.Expr) {
		switch obj := c.variable(lhs); {
		case obj == nil:
		case rhs == nil:
			f.unknown[obj] = true
		default:
			f.values[obj] = append(f.values[obj], rhs)
		}
	}
	parameters := func(lists ...*ast.FieldList) {
		for _, list := range lists {
			for i := 0; list != nil && i < len(list.List); i++ {
				for _, name := range list.List[i].Names {
					assign(name, nil)
				}
			}
		}
	}
	each := func(lhs []ast.Expr, rhs []ast.Expr) {
		for i := range lhs {
			switch {
			case len(rhs) == len(lhs):
				assign(lhs[i], rhs[i])
			case i == 0 && len(rhs) == 1:
				assign(lhs[i], rhs[0])
			case len(rhs) > 0:
				assign(lhs[i], nil)
			}
		}
	}
	c.inspect.Preorder([]ast.Node{
		(*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.CompositeLit)(nil), (*ast.RangeStmt)(nil),
		(*ast.UnaryExpr)(nil), (*ast.FuncDecl)(nil), (*ast.FuncType)(nil),
	}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.ASSIGN || n.Tok == token.DEFINE {
				each(n.Lhs, n.Rhs)
			} else {
				assign(n.Lhs[0], nil)
			}
		case *ast.ValueSpec:
			names := make([]ast.Expr, len(n.Names))
			for i, name := range n.Names {
				names[i] = name
			}
			each(names, n.Values)
		case *ast.CompositeLit:
			st := structOf(c.typeOf(n))
			for i := 0; st != nil && i < len(n.Elts); i++ {
				if kv, ok := n.Elts[i].(*ast.KeyValueExpr); ok {
					assign(kv.Key, kv.Value)
				} else if i < st.NumFields() {
					f.values[st.Field(i)] = append(f.values[st.Field(i)], n.Elts[i])
				}
			}
		case *ast.RangeStmt:
			assign(n.Key, nil)
			assign(n.Value, nil)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				assign(n.X, nil)
			}
		case *ast.FuncDecl:
			parameters(n.Recv)
		case *ast.FuncType:
			parameters(n.Params, n.Results)
		}
	})
	c.flowOnce = f
	return f
}

// variable returns the variable or the field that an expression names, or nil.
func (c *checker) variable(e ast.Expr) *types.Var {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return c.variable(x.X)
	case *ast.SelectorExpr:
		e = x.Sel
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := c.TypesInfo.ObjectOf(id).(*types.Var)
	if v != nil {
		v = v.Origin()
	}
	return v
}

// valuesOf returns what a variable or a field is given, and nil if another package can give it more.
func (c *checker) valuesOf(v *types.Var) []ast.Expr {
	if v == nil || c.flow().unknown[v] || v.Pkg() != c.Pkg {
		return nil
	}
	if v.Exported() && (v.IsField() || v.Parent() == c.Pkg.Scope()) && c.Pkg.Name() != "main" {
		return nil
	}
	return c.flow().values[v]
}

// once returns what a variable is given, if that is one expression, or nil.
func (c *checker) once(v *types.Var) ast.Expr {
	if values := c.valuesOf(v); len(values) == 1 {
		return values[0]
	}
	return nil
}

// origins returns the expressions that the value of e comes from: through variables, fields, and the first
// results of functions of this package. What is not known is returned as it is, and nil is left out.
func (c *checker) origins(e ast.Expr) []ast.Expr {
	var found []ast.Expr
	seen := map[any]bool{}
	var follow func(e ast.Expr)
	follow = func(e ast.Expr) {
		e = ast.Unparen(e)
		var next []ast.Expr
		switch x := e.(type) {
		case *ast.Ident, *ast.SelectorExpr:
			if c.TypesInfo.Types[e].IsNil() {
				return
			}
			if v := c.variable(e); v != nil {
				if seen[v] {
					return
				}
				seen[v] = true
				next = c.valuesOf(v)
			}
		case *ast.CallExpr:
			f, ok := typeutil.Callee(c.TypesInfo, x).(*types.Func)
			if !ok {
				break
			}
			f = f.Origin()
			if seen[f] {
				return
			}
			seen[f] = true
			next = c.firstResults(c.decls[f])
		}
		if next == nil {
			found = append(found, e)
		}
		for _, e := range next {
			follow(e)
		}
	}
	follow(e)
	return found
}

// findDecls notes the functions that the package declares with a body.
func (c *checker) findDecls() {
	c.decls = map[*types.Func]*ast.FuncDecl{}
	for _, file := range c.Files {
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && decl.Body != nil {
				if f, ok := c.TypesInfo.Defs[decl.Name].(*types.Func); ok {
					c.decls[f] = decl
				}
			}
		}
	}
}

// firstResults returns the first result of each return of a function, or nil if one of them is not
// written there.
func (c *checker) firstResults(decl *ast.FuncDecl) []ast.Expr {
	if decl == nil {
		return nil
	}
	return returned(decl.Body)
}

func returned(body *ast.BlockStmt) []ast.Expr {
	var results []ast.Expr
	bare := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) == 0 {
				bare = true
			} else {
				results = append(results, n.Results[0])
			}
		}
		return true
	})
	if bare {
		return nil
	}
	return results
}

// typeOf returns the type of an expression, or types.Typ[types.Invalid].
func (c *checker) typeOf(e ast.Expr) types.Type {
	if t := c.TypesInfo.TypeOf(e); t != nil {
		return t
	}
	return types.Typ[types.Invalid]
}

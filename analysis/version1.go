package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// findVersion1 reports imports of version 1 of the driver in a package that uses version 2, and
// methods that version 2 ignores because they have the form of version 1.
func (c *checker) findVersion1() {
	for _, f := range c.Files {
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err == nil && strings.HasPrefix(path+"/", driver1+"/") && !strings.HasPrefix(path+"/", driver+"/") {
				c.report(spec, "v1", "version 1 of the driver beside version 2: its types, such as primitive.Binary, are other types for version 2")
			}
		}
	}
	// The methods of a type are mended together: a type that writes one form and reads the other loses
	// its values.
	pairs := make(map[types.Object]*pair)
	var order []*pair
	c.visit((*ast.FuncDecl)(nil), func(n ast.Node, _ []ast.Node) {
		decl := n.(*ast.FuncDecl)
		f, ok := c.TypesInfo.Defs[decl.Name].(*types.Func)
		if !ok {
			return
		}
		named := receiver(f)
		if named == nil {
			return
		}
		p := pairs[named]
		if p == nil {
			p = new(pair)
			pairs[named] = p
			order = append(order, p)
		}
		sig := f.Signature()
		switch {
		case f.Name() == "MarshalBSONValue":
			p.has[0] = true
			p.called = p.called || c.uses(f)
			if sig.Params().Len() == 0 && sig.Results().Len() == 3 && isOtherByte(sig.Results().At(0).Type()) {
				p.old = append(p.old, oldMethod{decl, ignored(f, "MarshalBSONValue() (byte, []byte, error)"), c.resultFix(decl)})
			}
		case f.Name() == "UnmarshalBSONValue":
			p.has[1] = true
			p.called = p.called || c.uses(f)
			if sig.Params().Len() == 2 && isOtherByte(sig.Params().At(0).Type()) {
				p.old = append(p.old, oldMethod{decl, ignored(f, "UnmarshalBSONValue(byte, []byte) error"), c.paramFix(decl)})
			}
		}
	})
	elsewhere := len(order) > 0 && c.mentionedElsewhere()
	for _, p := range order {
		fix := p.fix()
		if elsewhere {
			fix = nil
		}
		for _, m := range p.old {
			c.reportFix(m.decl.Name, "v1", m.message, fix)
			fix = nil // it mends both
		}
	}
}

// A pair is the two methods of a type that marshal it.
type pair struct {
	has    [2]bool // whether the type has MarshalBSONValue and UnmarshalBSONValue, in any form
	called bool    // this package calls one of them, with the types of the old form
	old    []oldMethod
}

// An oldMethod has the form of version 1.
type oldMethod struct {
	decl    *ast.FuncDecl
	message string
	fix     *analysis.SuggestedFix
}

// fix returns the fix of all methods of the old form, or nil unless both methods have the new form
// then and the package still compiles.
func (p *pair) fix() *analysis.SuggestedFix {
	if p.called || p.has != [2]bool{true, true} {
		return nil
	}
	all := &analysis.SuggestedFix{Message: "Give the methods the form of version 2"}
	for _, m := range p.old {
		if m.fix == nil {
			return nil
		}
		all.TextEdits = append(all.TextEdits, m.fix.TextEdits...)
	}
	return all
}

// uses reports whether the package calls a method or takes its value.
func (c *checker) uses(f *types.Func) bool {
	for _, used := range c.TypesInfo.Uses {
		if used == f {
			return true
		}
	}
	return false
}

// receiver returns the type that a method belongs to, or nil for a function.
func receiver(f *types.Func) types.Object {
	if f.Signature().Recv() == nil {
		return nil
	}
	t := f.Signature().Recv().Type()
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj()
	}
	return nil
}

func ignored(f *types.Func, form string) string {
	return fmt.Sprintf("version 2 of the driver ignores this form of %s: the method must be %s; what version 2 has stored since without it has another form",
		f.Name(), form)
}

// isOtherByte reports whether t is a named type of kind byte, such as bsontype.Type.
func isOtherByte(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.Named); !ok {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uint8
}

// resultFix makes the first result a byte, if each return names its three results or is that of a
// call.
func (c *checker) resultFix(decl *ast.FuncDecl) *analysis.SuggestedFix {
	first := decl.Type.Results.List[0]
	if decl.Body == nil || len(first.Names) > 0 || !c.importStays(first.Type) {
		return nil
	}
	edits := []analysis.TextEdit{{Pos: first.Type.Pos(), End: first.Type.End(), NewText: []byte("byte")}}
	possible := true
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if call, ok := returnedCall(n); ok && !c.declares(decl, "typ", "data", "err") {
				edits = append(edits,
					analysis.TextEdit{Pos: n.Pos(), End: call.Pos(), NewText: []byte("typ, data, err := ")},
					analysis.TextEdit{Pos: call.End(), End: call.End(), NewText: []byte("\nreturn byte(typ), data, err")})
				return true
			}
			if len(n.Results) != 3 {
				possible = false
				return false
			}
			if _, ok := n.Results[0].(*ast.BasicLit); ok {
				return true // an untyped constant is a byte already
			}
			edits = append(edits,
				analysis.TextEdit{Pos: n.Results[0].Pos(), End: n.Results[0].Pos(), NewText: []byte("byte(")},
				analysis.TextEdit{Pos: n.Results[0].End(), End: n.Results[0].End(), NewText: []byte(")")})
		}
		return true
	})
	if !possible {
		return nil
	}
	return &analysis.SuggestedFix{Message: "Return a byte", TextEdits: edits}
}

// returnedCall returns the call whose results a statement returns.
func returnedCall(n *ast.ReturnStmt) (*ast.CallExpr, bool) {
	if len(n.Results) != 1 {
		return nil, false
	}
	call, ok := n.Results[0].(*ast.CallExpr)
	return call, ok
}

// declares reports whether a name is declared in the function, or used there for something declared
// elsewhere.
func (c *checker) declares(decl *ast.FuncDecl, names ...string) bool {
	found := false
	ast.Inspect(decl, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && slices.Contains(names, id.Name) {
			found = true
		}
		return !found
	})
	return found
}

// importStays reports whether the import that a type is named by is used for more than the types
// that the fixes remove: those of methods named MarshalBSONValue and UnmarshalBSONValue.
func (c *checker) importStays(named ast.Expr) bool {
	pkg := c.importOf(named)
	if pkg == nil {
		id, ok := named.(*ast.Ident)
		return ok && c.TypesInfo.ObjectOf(id).Pkg() == c.Pkg // and not of a dot import
	}
	uses := 0
	for _, used := range c.TypesInfo.Uses {
		if used == pkg {
			uses++
		}
	}
	c.visit((*ast.FuncDecl)(nil), func(n ast.Node, _ []ast.Node) {
		decl := n.(*ast.FuncDecl)
		fields := decl.Type.Params
		switch decl.Name.Name {
		case "MarshalBSONValue":
			fields = decl.Type.Results
		case "UnmarshalBSONValue":
			if fields != nil && len(fields.List) == 2 && decl.Body != nil && c.usesFirst(decl) {
				return // the fix names the type in the body
			}
		default:
			return
		}
		if fields != nil && len(fields.List) > 0 && c.importOf(fields.List[0].Type) == pkg {
			uses--
		}
	})
	return uses > 0
}

// importOf returns the import of the file that an expression pkg.Name refers to, or nil.
func (c *checker) importOf(e ast.Expr) *types.PkgName {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return nil
	}
	pkg, _ := c.TypesInfo.Uses[id].(*types.PkgName)
	return pkg
}

// paramFix makes the first parameter a byte. If the body uses it, it gets a variable of the old name and type.
func (c *checker) paramFix(decl *ast.FuncDecl) *analysis.SuggestedFix {
	first := decl.Type.Params.List[0]
	if decl.Body == nil || len(first.Names) > 1 || !c.importStays(first.Type) {
		return nil
	}
	fix := &analysis.SuggestedFix{
		Message:   "Take a byte",
		TextEdits: []analysis.TextEdit{{Pos: first.Type.Pos(), End: first.Type.End(), NewText: []byte("byte")}},
	}
	if !c.usesFirst(decl) {
		return fix
	}
	name, typ := first.Names[0].Name, types.ExprString(first.Type)
	as := "typ"
	if c.declares(decl, as) {
		as = name + "Byte"
	}
	if c.declares(decl, as) {
		return nil
	}
	fix.TextEdits[0].Pos, fix.TextEdits[0].NewText = first.Pos(), []byte(as+" byte")
	fix.TextEdits = append(fix.TextEdits, analysis.TextEdit{
		Pos: decl.Body.List[0].Pos(), End: decl.Body.List[0].Pos(), NewText: []byte(name + " := " + typ + "(" + as + ")\n"),
	})
	return fix
}

// usesFirst reports whether the body of a method uses its first parameter.
func (c *checker) usesFirst(decl *ast.FuncDecl) bool {
	first := decl.Type.Params.List[0]
	return len(first.Names) == 1 && c.TypesInfo.Defs[first.Names[0]] != nil &&
		len(c.usesOf(c.variable(first.Names[0]), decl.Body)) > 0
}

package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
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
	c.visit((*ast.FuncDecl)(nil), func(n ast.Node, _ []ast.Node) {
		decl := n.(*ast.FuncDecl)
		f, ok := c.TypesInfo.Defs[decl.Name].(*types.Func)
		if !ok || f.Signature().Recv() == nil {
			return
		}
		sig := f.Signature()
		switch {
		case f.Name() == "MarshalBSONValue" && sig.Params().Len() == 0 && sig.Results().Len() == 3 && isOtherByte(sig.Results().At(0).Type()):
			c.reportFix(decl.Name, "v1", ignored(f, "MarshalBSONValue() (byte, []byte, error)"), c.resultFix(decl))
		case f.Name() == "UnmarshalBSONValue" && sig.Params().Len() == 2 && isOtherByte(sig.Params().At(0).Type()):
			c.reportFix(decl.Name, "v1", ignored(f, "UnmarshalBSONValue(byte, []byte) error"), c.paramFix(decl))
		}
	})
}

func ignored(f *types.Func, form string) string {
	return fmt.Sprintf("version 2 of the driver ignores this form of %s: the method must be %s", f.Name(), form)
}

// isOtherByte reports whether t is a named type of kind byte, such as bsontype.Type.
func isOtherByte(t types.Type) bool {
	if _, ok := types.Unalias(t).(*types.Named); !ok {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uint8
}

// resultFix makes the first result a byte, if each return names its three results.
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

// paramFix makes the first parameter a byte, if the body does not use it.
func (c *checker) paramFix(decl *ast.FuncDecl) *analysis.SuggestedFix {
	first := decl.Type.Params.List[0]
	if len(first.Names) > 1 || !c.importStays(first.Type) {
		return nil
	}
	for _, name := range first.Names {
		obj := c.TypesInfo.Defs[name]
		for _, used := range c.TypesInfo.Uses {
			if obj != nil && used == obj {
				return nil
			}
		}
	}
	return &analysis.SuggestedFix{
		Message:   "Take a byte",
		TextEdits: []analysis.TextEdit{{Pos: first.Type.Pos(), End: first.Type.End(), NewText: []byte("byte")}},
	}
}

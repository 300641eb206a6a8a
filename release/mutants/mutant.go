package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mutant is one change: the text between two offsets of a file is replaced.
type mutant struct {
	file         string // relative to the top of the repository
	line, column int    // the column in bytes
	start, end   int
	text         string // the new text
	was          string
	source       string    // the line, without spaces around it
	function     *function // whose body the change is in, or nil
	within       string    // the declared name that the change is in: Func, Type.Method, or a variable
	ordinal      int       // among the changes of the line with the same text, from 1
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.file, m.line, m.change(), m.source)
}

func (m mutant) change() string {
	return strings.Join(strings.Fields(m.was), " ") + " -> " + strings.Join(strings.Fields(m.text), " ")
}

// key identifies the change in the list of equal ones, whatever its line number is. If its line has the same change several times,
// the second one ends with " (2)". Equal lines of one function have the same keys.
func (m mutant) key() string {
	key := m.file + "\t" + m.within + "\t" + m.source + "\t" + m.change()
	if m.ordinal > 1 {
		key += fmt.Sprintf(" (%d)", m.ordinal)
	}
	return key
}

// number sets the ordinals of the changes of a file. The first of a line is the leftmost.
func number(mutants []mutant) {
	slices.SortStableFunc(mutants, func(a, b mutant) int { return cmp.Compare(a.start, b.start) })
	type place struct {
		line   int
		change string
	}
	seen := make(map[place]int)
	for i, m := range mutants {
		p := place{m.line, m.change()}
		seen[p]++
		mutants[i].ordinal = seen[p]
	}
}

// overlay writes the changed file to the directory work and returns it for the go command.
func (m mutant) overlay(work string) (map[string]string, error) {
	b, err := os.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(work, "mutant.go")
	return map[string]string{path: name}, os.WriteFile(name, fmt.Append(nil, string(b[:m.start]), m.text, string(b[m.end:])), 0o644)
}

// finder collects the changes of a file.
type finder struct {
	fset     *token.FileSet
	info     *types.Info
	name     string
	content  []byte
	function *function // that is visited, or nil
	within   string    // the declared name that is visited
	mutants  []mutant
}

// find returns the name of the package in dir and its changes, in the order of the files.
func find(dir string) (string, []mutant, error) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
		packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps}, dir)
	if err != nil {
		return "", nil, err
	}
	if len(pkgs) != 1 || len(pkgs[0].Errors) > 0 {
		return "", nil, fmt.Errorf("%s: want one package without errors: %v", dir, pkgs)
	}
	top, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	var mutants []mutant
	for _, file := range pkgs[0].Syntax {
		name := pkgs[0].Fset.Position(file.Pos()).Filename
		f := finder{fset: pkgs[0].Fset, info: pkgs[0].TypesInfo}
		if f.content, err = os.ReadFile(name); err != nil {
			return "", nil, err
		}
		if f.name, err = filepath.Rel(top, name); err != nil {
			return "", nil, err
		}
		for _, decl := range file.Decls {
			f.declaration(decl)
		}
		number(f.mutants)
		mutants = append(mutants, f.mutants...)
	}
	return pkgs[0].Name, mutants, nil
}

// declaration collects the changes of a declaration at the top of the file.
func (f *finder) declaration(decl ast.Decl) {
	f.function = nil
	if fn, ok := decl.(*ast.FuncDecl); ok {
		f.within = nameOf(fn)
		if fn.Body != nil && fn.Name.Name != "_" {
			f.function = f.newFunction(fn)
		}
		ast.Inspect(fn, f.visit)
		return
	}
	group, ok := decl.(*ast.GenDecl)
	if !ok || !f.visit(group) {
		return
	}
	for _, spec := range group.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			f.within = spec.Names[0].Name
		case *ast.TypeSpec:
			f.within = spec.Name.Name
		}
		ast.Inspect(spec, f.visit)
	}
}

// nameOf returns the name of a function, after that of its receiver's type.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) text(n ast.Node) string {
	return string(f.content[f.offset(n.Pos()):f.offset(n.End())])
}

// replace adds the change of a node to the text.
func (f *finder) replace(n ast.Node, text string) { f.cut(n.Pos(), n.End(), text) }

func (f *finder) cut(from, to token.Pos, text string) {
	start, end := f.offset(from), f.offset(to)
	first := strings.LastIndexByte(string(f.content[:start]), '\n') + 1
	line, _, _ := strings.Cut(string(f.content[first:]), "\n")
	fn := f.function
	if fn != nil && start < fn.body {
		fn = nil
	}
	f.mutants = append(f.mutants, mutant{
		function: fn, within: f.within, file: filepath.ToSlash(f.name), line: f.fset.Position(from).Line, column: f.fset.Position(from).Column, start: start, end: end, text: text,
		was: string(f.content[start:end]), source: strings.TrimSpace(line),
	})
}

// others maps an operator to those that take its place: a condition is negated, and a bound moves by one.
var others = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.GEQ: {token.GTR, token.LSS},
	token.GTR: {token.GEQ, token.LEQ}, token.LEQ: {token.LSS, token.GTR},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.SHL: {token.SHR}, token.SHR: {token.SHL},
}

// swapped maps names of other packages' constants and variables to what is exchanged for them.
var swapped = map[string]string{
	"bson.TypeBinaryUUID": "bson.TypeBinaryUUIDOld", "bson.TypeBinaryUUIDOld": "bson.TypeBinaryUUID",
	"bson.TypeBinaryGeneric": "bson.TypeBinaryUUID", "binary.BigEndian": "binary.LittleEndian", "binary.LittleEndian": "binary.BigEndian",
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.IMPORT && n.Tok != token.CONST
	case *ast.BinaryExpr:
		for _, op := range others[n.Op] {
			if t := f.info.TypeOf(n.X); n.Op == token.ADD && t != nil && types.Identical(t.Underlying(), types.Typ[types.String]) {
				continue
			}
			f.cut(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
		}
	case *ast.IfStmt:
		cond := f.text(n.Cond)
		f.replace(n.Cond, "("+cond+") && false")
		if _, simple := n.Cond.(*ast.BinaryExpr); !simple {
			f.replace(n.Cond, "!("+cond+")")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT {
			if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
				f.replace(n, strconv.FormatInt(v+1, 10))
			}
		}
	case *ast.SelectorExpr:
		if other, ok := swapped[f.text(n)]; ok {
			f.replace(n, other)
		}
	case *ast.Ident:
		if n.Name == "true" {
			f.replace(n, "false")
		} else if n.Name == "false" {
			f.replace(n, "true")
		} else if next := f.nextConstant(n); next != "" {
			f.replace(n, next)
		}
	case *ast.ExprStmt:
		f.replace(n, "{}")
	case *ast.DeferStmt:
		f.replace(n, "{}")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.replace(n, "{}")
		}
	case *ast.IncDecStmt:
		f.replace(n, "{}")
	case *ast.ReturnStmt:
		if len(n.Results) > 0 {
			last := n.Results[len(n.Results)-1]
			if t := f.info.TypeOf(last); t != nil && types.Identical(t, types.Universe.Lookup("error").Type()) && f.text(last) != "nil" {
				before := string(f.content[f.offset(n.Pos()):f.offset(last.Pos())])
				f.replace(n, "{ _ = "+f.text(last)+"; "+before+"nil }")
			}
		}
	}
	return true
}

// nextConstant returns the name of another constant of the same type, which the same package declares, or "".
func (f *finder) nextConstant(id *ast.Ident) string {
	c, ok := f.info.Uses[id].(*types.Const)
	if !ok || c.Pkg() == nil || c.Parent() != c.Pkg().Scope() {
		return ""
	}
	named, ok := c.Type().(*types.Named)
	if !ok || named.Obj().Pkg() != c.Pkg() || f.info.Defs[id] != nil {
		return ""
	}
	names := c.Pkg().Scope().Names()
	for i, name := range names {
		if name != c.Name() {
			continue
		}
		for j := 1; j < len(names); j++ {
			other, ok := c.Pkg().Scope().Lookup(names[(i+j)%len(names)]).(*types.Const)
			if ok && types.Identical(other.Type(), c.Type()) && constant.Compare(c.Val(), token.NEQ, other.Val()) && (other.Exported() || c.Pkg().Scope().Lookup(c.Name()) == f.info.Uses[id]) {
				return other.Name()
			}
		}
	}
	return ""
}

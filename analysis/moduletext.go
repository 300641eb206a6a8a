package analysis

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A module is what the text of a module's files tells about its clients. Clients are often made, and types
// registered, in a package that the one that is looked at does not import, so that there are no types to ask.
type module struct {
	files []moduleFile

	registrations sync.Once
	types         registered
	all           bool // a registry accepts types that are not registered
	unclear       bool // a type is registered, and the text does not show which one

	representationsOnce sync.Once
	representationsOf   map[string]bool
}

// A moduleFile is a Go file of a module, and the import path of its package.
type moduleFile struct {
	name, pkg string
	text      []byte
}

// module returns what the text of the package's module tells.
func (c *checker) module() *module { return moduleIn(c.moduleDir()) }

var modules sync.Map // *module by folder

func moduleIn(dir string) *module {
	m, ok := modules.Load(dir)
	if !ok {
		m, _ = modules.LoadOrStore(dir, readModule(dir))
	}
	return m.(*module)
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`)

// readModule reads the Go files of a module that name the driver, this library or a representation, tests too. The files
// of modules within it are not read.
func readModule(dir string) *module {
	m := new(module)
	if dir == "" {
		return m
	}
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	line := moduleLine.FindSubmatch(b)
	if err != nil || line == nil {
		return m
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && name != dir:
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if base := d.Name(); err == nil || base == "vendor" || base == "testdata" || base[0] == '.' || base[0] == '_' {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go"):
			text, err := os.ReadFile(name)
			rel, _ := filepath.Rel(dir, filepath.Dir(name))
			if err == nil && slices.ContainsFunc([]string{"mongo-driver/", library, "epresentation="}, func(s string) bool { return bytes.Contains(text, []byte(s)) }) {
				m.files = append(m.files, moduleFile{name, path.Join(string(line[1]), filepath.ToSlash(rel)), text})
			}
		}
		return nil
	})
	return m
}

// findRegistrations notes the types that the files of the module register.
func (m *module) findRegistrations() {
	m.registrations.Do(func() {
		m.types = registered{}
		packages := map[string]*packageText{}
		var order []*packageText
		for _, f := range m.files {
			if !bytes.Contains(f.text, []byte("Register")) && !bytes.Contains(f.text, []byte("SetImplicitType")) {
				continue
			}
			if packages[f.pkg] == nil {
				packages[f.pkg] = &packageText{m: m, path: f.pkg}
				order = append(order, packages[f.pkg])
			}
		}
		for _, f := range m.files {
			if p := packages[f.pkg]; p != nil {
				if file, err := parser.ParseFile(token.NewFileSet(), f.name, f.text, parser.SkipObjectResolution); err == nil {
					p.files = append(p.files, file)
				}
			}
			m.all = m.all || bytes.Contains(f.text, []byte("UnregisteredAsUUID()")) || bytes.Contains(f.text, []byte("UnregisteredAsBytes()"))
		}
		for _, p := range order {
			for _, f := range p.files {
				p.file(f)
			}
		}
	})
}

// A packageText is the text of a package that may register types.
type packageText struct {
	m     *module
	path  string
	files []*ast.File
}

// file notes the types that a file registers.
func (p *packageText) file(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		fun := ast.Unparen(call.Fun)
		var arg ast.Expr // of a type, if it is known
		if index, ok := fun.(*ast.IndexExpr); ok {
			fun, arg = ast.Unparen(index.X), index.Index
		}
		var name string
		switch x := fun.(type) {
		case *ast.SelectorExpr:
			name = x.Sel.Name
		case *ast.Ident:
			name = x.Name
		}
		isUUID, registers := registrars[name]
		switch {
		case name == registerFunc && len(call.Args) == 3:
			if arg == nil {
				arg = p.parameter(f, call.Args[1])
			}
			p.add(f, arg, true)
		case registers:
			p.reflected(f, call.Args[0], isUUID, 4)
		}
		return true
	})
}

// reflected notes the type of an expression of type reflect.Type, through variables of the package.
func (p *packageText) reflected(f *ast.File, e ast.Expr, isUUID bool, depth int) {
	switch x := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		switch fun := ast.Unparen(x.Fun).(type) {
		case *ast.IndexExpr: // reflect.TypeFor[T]()
			p.add(f, fun.Index, isUUID)
			return
		case *ast.SelectorExpr:
			if fun.Sel.Name == "Elem" && len(x.Args) == 0 { // reflect.TypeOf((*T)(nil)).Elem()
				p.reflected(f, fun.X, isUUID, depth)
				return
			}
			if fun.Sel.Name == "TypeOf" && len(x.Args) == 1 {
				p.add(f, typeOfValue(x.Args[0]), isUUID)
				return
			}
		}
	case *ast.Ident:
		known := false
		for _, g := range p.files {
			ast.Inspect(g, func(n ast.Node) bool {
				var names, values []ast.Expr
				switch n := n.(type) {
				case *ast.AssignStmt:
					names, values = n.Lhs, n.Rhs
				case *ast.ValueSpec:
					values = n.Values
					for _, id := range n.Names {
						names = append(names, id)
					}
				case *ast.RangeStmt: // over a literal of types
					if id, ok := n.Value.(*ast.Ident); ok && id.Name == x.Name && depth > 0 {
						if lit, ok := ast.Unparen(n.X).(*ast.CompositeLit); ok {
							known = true
							for _, elt := range lit.Elts {
								p.reflected(g, elt, isUUID, depth-1)
							}
						}
					}
				}
				for i := 0; i < len(names) && len(names) == len(values) && depth > 0; i++ {
					if id, ok := names[i].(*ast.Ident); ok && id.Name == x.Name {
						known = true
						p.reflected(g, values[i], isUUID, depth-1)
					}
				}
				return true
			})
		}
		if known {
			return
		}
	}
	p.m.unclear = true
}

// typeOfValue returns the type of T{…}, of T(v), of new(T) and of (*T)(nil), or nil.
func typeOfValue(e ast.Expr) ast.Expr {
	switch x := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return x.Type
	case *ast.UnaryExpr:
		return typeOfValue(x.X)
	case *ast.CallExpr:
		if id, ok := x.Fun.(*ast.Ident); ok && id.Name == "new" && len(x.Args) == 1 {
			return x.Args[0]
		}
		if len(x.Args) == 1 {
			return x.Fun
		}
	case *ast.SelectorExpr: // uuid.Nil
		return x
	}
	return nil
}

// parameter returns the type of the first parameter of a function: a literal, a method expression T.UUID, or a function
// of the package.
func (p *packageText) parameter(f *ast.File, e ast.Expr) ast.Expr {
	switch x := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		if len(x.Type.Params.List) > 0 {
			return x.Type.Params.List[0].Type
		}
	case *ast.SelectorExpr:
		if id, ok := x.X.(*ast.Ident); !ok || importPath(f, id.Name) == "" {
			return x.X
		}
	case *ast.Ident:
		for _, g := range p.files {
			for _, d := range g.Decls {
				if decl, ok := d.(*ast.FuncDecl); ok && decl.Recv == nil && decl.Name.Name == x.Name && decl.Type.TypeParams == nil && len(decl.Type.Params.List) > 0 {
					return decl.Type.Params.List[0].Type
				}
			}
		}
	}
	return nil
}

// add notes that a type is registered, and its type arguments too, which it registers if it is a UUID that can be null.
func (p *packageText) add(f *ast.File, t ast.Expr, isUUID bool) {
	if t != nil && p.isTypeParameter(f, t) {
		t = nil // a function that registers its type argument
	}
	name := ""
	if t != nil {
		name = p.name(f, t)
	}
	if name == "" {
		p.m.unclear = true
		return
	}
	p.m.types.add(name, isUUID)
	if index, ok := ast.Unparen(t).(*ast.IndexExpr); ok {
		p.m.types.add(p.name(f, index.Index), isUUID)
	}
}

// isTypeParameter reports whether t names a type parameter of a function around it.
func (p *packageText) isTypeParameter(f *ast.File, t ast.Expr) bool {
	id, ok := t.(*ast.Ident)
	if !ok {
		return false
	}
	for _, d := range f.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || decl.Pos() > t.Pos() || t.Pos() >= decl.End() || decl.Type.TypeParams == nil {
			continue
		}
		for _, field := range decl.Type.TypeParams.List {
			if slices.ContainsFunc(field.Names, func(name *ast.Ident) bool { return name.Name == id.Name }) {
				return true
			}
		}
	}
	return false
}

// name returns a type as typeString does, or "".
func (p *packageText) name(f *ast.File, t ast.Expr) string {
	switch x := t.(type) {
	case *ast.ParenExpr:
		return p.name(f, x.X)
	case *ast.StarExpr:
		return p.name(f, x.X)
	case *ast.Ident:
		return p.path + "." + x.Name
	case *ast.SelectorExpr:
		if id, ok := x.X.(*ast.Ident); ok {
			if path := importPath(f, id.Name); path != "" {
				return path + "." + x.Sel.Name
			}
		}
	case *ast.ArrayType:
		if n, ok := x.Len.(*ast.BasicLit); ok && n.Value == "16" {
			return "[16]byte"
		}
	case *ast.IndexExpr:
		return p.name(f, x.X) + "[" + p.name(f, x.Index) + "]"
	}
	return ""
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// importPath returns the path of the import that a file gives a name, or "". Without a name of its own an import has
// the last element of its path, as far as a text tells.
func importPath(f *ast.File, name string) string {
	for _, spec := range f.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		base := path.Base(importPath)
		if majorVersion.MatchString(base) {
			base = path.Base(path.Dir(importPath))
		}
		if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && (base == name || strings.HasSuffix(base, "-"+name) ||
			strings.HasPrefix(base, name+".") || strings.HasPrefix(base, name+"-")) {
			return importPath
		}
	}
	return ""
}

var (
	inURI   = regexp.MustCompile(`(?i)uuidRepresentation=(\w+)`)
	inCode  = regexp.MustCompile(`\b\w+\.(Standard|CSharpLegacy|JavaLegacy|PythonLegacy)\b`)
	ofValue = regexp.MustCompile(`WithRepresentation\(|\.Filter\(|TimeV8\(|V8Generator\(|\.Permute\(|OpenV8\(|ClosedV8\(`)
)

// representations returns the representations, in lower case, that clients, databases and collections of the module may
// have: all that are named, but for the conversion of a single value.
func (m *module) representations() map[string]bool {
	m.representationsOnce.Do(func() {
		found := map[string]bool{}
		note := func(text []byte, in *regexp.Regexp) {
			for _, match := range in.FindAllSubmatch(text, -1) {
				found[strings.ToLower(string(match[1]))] = true
			}
		}
		for _, f := range m.files {
			note(f.text, inURI)
			for line := range bytes.Lines(f.text) {
				if !ofValue.Match(line) {
					note(line, inCode)
				}
			}
		}
		m.representationsOf = found
	})
	return m.representationsOf
}

package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"
)

// registeredFact marks a type whose declaration has the directive //bsonids:registered.
type registeredFact struct{}

func (*registeredFact) AFact()         {}
func (*registeredFact) String() string { return "registered" }

const directive = "//bsonids:registered"

// exportRegistered exports a fact for each type of this package with the directive.
func (c *checker) exportRegistered() {
	for _, f := range c.Files {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range gen.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok || !hasDirective(spec.Doc) && !(hasDirective(gen.Doc) && len(gen.Specs) == 1) {
					continue
				}
				if obj := c.TypesInfo.Defs[spec.Name]; obj != nil {
					c.ExportObjectFact(obj, new(registeredFact))
				}
			}
		}
	}
}

func hasDirective(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.TrimSpace(c.Text) == directive
	})
}

// The methods of bsoncodec.RegistryBuilder and of bson.Registry that take the type which they
// register.
var registrars = map[string]bool{
	"RegisterUUIDType": true, "SetImplicitType": true, "RegisterTypeEncoder": true, "RegisterTypeDecoder": true,
	"RegisterBytesType": true, "RegisterNullUUIDType": true, "RegisterDocumentType": true,
}

// findRegistered notes the types that this package registers: reflect.TypeFor[T]() or
// reflect.TypeOf(v) as the argument of a registering method. A call of UnregisteredAsUUID or
// UnregisteredAsBytes registers all.
func (c *checker) findRegistered() {
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if ok && (sel.Sel.Name == "UnregisteredAsUUID" || sel.Sel.Name == "UnregisteredAsBytes") {
			c.allRegistered = true
		}
		if !ok || !registrars[sel.Sel.Name] || len(call.Args) == 0 {
			return
		}
		inner, ok := ast.Unparen(call.Args[0]).(*ast.CallExpr)
		if !ok {
			return
		}
		var t types.Type
		if index, ok := ast.Unparen(inner.Fun).(*ast.IndexExpr); ok {
			t = c.TypesInfo.TypeOf(index.Index)
		} else if len(inner.Args) == 1 {
			t = c.TypesInfo.TypeOf(inner.Args[0])
		}
		if t == nil {
			return
		}
		c.registered[typeName(t)] = true
		if st := structOf(t); st != nil && sel.Sel.Name == "RegisterNullUUIDType" {
			for f := range st.Fields() {
				c.registered[typeName(f.Type())] = true
			}
		}
	})
}

// isUnregistered reports whether a registry of bsoncodec refuses t, as far as this package tells.
func (c *checker) isUnregistered(t types.Type) bool {
	t = types.Unalias(t)
	if !isOctets(t) || c.allRegistered {
		return false
	}
	named, ok := t.(*types.Named)
	if !ok {
		return true
	}
	switch name := typeName(t); {
	case name == "github.com/google/uuid.UUID", name == "uuid.UUID", c.registered[name]:
		return false
	}
	return !marshalsItself(t) && !c.ImportObjectFact(named.Obj(), new(registeredFact))
}

// findUnregistered reports fields and values of types that a registry refuses.
func (c *checker) findUnregistered() {
	c.visit((*ast.StructType)(nil), func(n ast.Node, _ []ast.Node) {
		tagged := false
		for _, f := range n.(*ast.StructType).Fields.List {
			tagged = tagged || bsonTagged(tagOf(f))
		}
		if !tagged {
			return
		}
		for _, f := range n.(*ast.StructType).Fields.List {
			if t := c.TypesInfo.TypeOf(f.Type); t != nil && reflect.StructTag(tagOf(f)).Get("bson") != "-" && exported(f) {
				c.unregistered(f.Type, t)
			}
		}
	})
	c.visit((*ast.CompositeLit)(nil), func(n ast.Node, _ []ast.Node) {
		lit := n.(*ast.CompositeLit)
		if t := c.TypesInfo.TypeOf(lit); t == nil || !isBSON(t, "E", "M", "A") {
			return
		}
		for _, elt := range lit.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			if t := c.TypesInfo.TypeOf(elt); t != nil {
				c.unregistered(elt, t)
			}
		}
	})
}

func (c *checker) unregistered(at ast.Expr, t types.Type) {
	// A struct is looked at where it is declared.
	if e := elementOf(t); c.isWrapper(e) || c.isUnregistered(e) {
		c.unregisteredAt(at, e, "")
	}
}

func (c *checker) unregisteredAt(at ast.Node, t types.Type, where string) {
	if c.refused[at.Pos()] {
		return
	}
	c.refused[at.Pos()] = true
	name := types.TypeString(t, types.RelativeTo(c.Pkg))
	if c.isWrapper(t) {
		c.report(at, "unregistered", fmt.Sprintf("a registry of bsoncodec refuses %s, a struct around a UUID, which the driver stores as a document%s: "+
			"declare it as a UUID type, or call RegistryBuilder.RegisterUUIDType", name, where))
		return
	}
	c.report(at, "unregistered", fmt.Sprintf("a registry of bsoncodec refuses %s, which is of kind [16]byte and not registered%s: "+
		"call RegistryBuilder.RegisterUUIDType, or name it in the flag -registered", name, where))
}

// isWrapper reports whether t is a struct that holds a UUID and nothing else: embedded, or in a field
// that the driver does not see while text or JSON shows it.
func (c *checker) isWrapper(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	st := structOf(t)
	if !ok || st == nil || marshalsItself(t) || c.registered[typeName(t)] || c.ImportObjectFact(named.Obj(), new(registeredFact)) {
		return false
	}
	var only *types.Var
	for i := range st.NumFields() {
		tag, tagged := reflect.StructTag(st.Tag(i)).Lookup("bson")
		if st.Field(i).Name() == "_" || tag == "-" {
			continue
		}
		if only != nil || tagged {
			return false
		}
		only = st.Field(i)
	}
	if only == nil || !isUUID(only.Type()) {
		return false
	}
	return only.Embedded() || !only.Exported() && (hasMethod(t, "MarshalText") || hasMethod(t, "MarshalJSON"))
}

// elementOf returns the type within pointers, slices, arrays and maps that is stored, or one of them for
// a type that contains nothing else than itself.
func elementOf(t types.Type) types.Type {
	for range 100 {
		if isOctets(t) || marshalsItself(t) {
			return t
		}
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		case *types.Map:
			t = u.Elem()
		default:
			return t
		}
	}
	return t
}

func tagOf(f *ast.Field) string {
	if f.Tag == nil || len(f.Tag.Value) < 2 {
		return ""
	}
	return f.Tag.Value[1 : len(f.Tag.Value)-1]
}

func exported(f *ast.Field) bool {
	if len(f.Names) == 0 {
		return true
	}
	return slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.IsExported() })
}

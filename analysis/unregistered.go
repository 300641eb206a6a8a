package analysis

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
)

// isUnregistered reports whether a registry of bsoncodec refuses t, as far as this package tells.
func (c *checker) isUnregistered(t types.Type) bool {
	if name := typeName(t); !isOctets(t) || name == "github.com/google/uuid.UUID" || name == "uuid.UUID" {
		return false
	}
	return !marshalsItself(t) && !c.isKnown(t)
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
			tag := reflect.StructTag(tagOf(f)).Get("bson")
			if t := c.TypesInfo.TypeOf(f.Type); t != nil && tag != "-" && !isInline(tag) && exported(f) {
				c.unregistered(f.Type, t, true)
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
				c.unregistered(elt, t, false)
			}
		}
	})
}

// unregistered looks at a type of a field or a value in a document.
func (c *checker) unregistered(at ast.Expr, t types.Type, addressable bool) {
	// A struct is looked at where it is declared.
	if e, addressable := elementOf(t, addressable); c.isRefused(e, addressable, true) {
		c.unregisteredAt(at, e, "")
	}
}

// isRefused reports whether a registry refuses t, a type that is not made of others, inside a document or as a whole one.
func (c *checker) isRefused(t types.Type, addressable, inside bool) bool {
	if c.isUnregistered(t) {
		return true
	}
	r := c.refusalOf(t)
	return r != nil && !(r.byValue && addressable) && (inside || !r.inside)
}

func (c *checker) unregisteredAt(at ast.Node, t types.Type, where string) {
	if c.refused[at.Pos()] {
		return
	}
	c.refused[at.Pos()] = true
	if r := c.refusalOf(t); r != nil {
		c.refusedType(at, t, r, where)
		return
	}
	c.refusedType(at, t, &refusal{what: "which is of kind [16]byte and not registered", wayOut: "call RegistryBuilder.RegisterUUIDType" + elsewhere}, where)
}

// elementOf returns the type within pointers, slices, arrays and maps that is stored, or one of them for
// a type that contains nothing else than itself. It also returns whether the value is addressable: that of a pointer or
// in a slice is, and that in a map is not.
func elementOf(t types.Type, addressable bool) (types.Type, bool) {
	for range 100 {
		if _, named := types.Unalias(t).(*types.Named); isOctets(t) || named && marshalsItself(t) {
			break
		}
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			t, addressable = u.Elem(), true
		case *types.Slice:
			t, addressable = u.Elem(), true
		case *types.Array:
			t = u.Elem()
		case *types.Map:
			t, addressable = u.Elem(), false
		default:
			return t, addressable
		}
	}
	return t, addressable
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

package analysis

import (
	"go/ast"
	"go/types"
	"reflect"
	"strings"
)

// isOctets reports whether t is of kind [16]byte.
func isOctets(t types.Type) bool {
	array, ok := t.Underlying().(*types.Array)
	if !ok || array.Len() != 16 {
		return false
	}
	elem, ok := array.Elem().Underlying().(*types.Basic)
	return ok && elem.Kind() == types.Uint8
}

// isUUID reports whether t is a type for UUIDs: a named type of kind [16]byte whose name says so, or
// which has the methods Version and Variant.
func isUUID(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || !isOctets(named) {
		return false
	}
	name := strings.ToLower(named.Obj().Name())
	if strings.Contains(name, "uuid") || strings.Contains(name, "guid") {
		return true
	}
	return hasMethod(named, "Version") && hasMethod(named, "Variant")
}

// typeName returns the import path and the name of a named type, and "" for another.
func typeName(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	return named.Obj().Pkg().Path() + "." + named.Obj().Name()
}

func isNamed(t types.Type, path string, names ...string) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	got := typeName(t)
	for _, name := range names {
		if got == path+"."+name {
			return true
		}
	}
	return false
}

func isBSON(t types.Type, names ...string) bool { return isNamed(t, driver+"/bson", names...) }

// hasMethod reports whether t or a pointer to it has a method, in the form of the driver's
// interfaces or not.
func hasMethod(t types.Type, name string) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	_, ok := obj.(*types.Func)
	return ok
}

// marshalsItself reports whether the driver asks t itself, and not a codec.
func marshalsItself(t types.Type) bool {
	for _, name := range []string{"MarshalBSONValue", "MarshalBSON", "UnmarshalBSONValue", "UnmarshalBSON"} {
		if hasMethod(t, name) {
			return true
		}
	}
	return false
}

// holds reports whether the driver, encoding or decoding a value of type t, meets a type for which
// match holds.
func holds(t types.Type, match func(types.Type) bool) bool {
	seen := map[types.Type]bool{}
	var visit func(types.Type) bool
	visit = func(t types.Type) bool {
		t = types.Unalias(t)
		if t == nil || seen[t] {
			return false
		}
		seen[t] = true
		if _, ok := t.(*types.Named); ok && marshalsItself(t) {
			return false
		}
		if match(t) {
			return true
		}
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			return visit(u.Elem())
		case *types.Slice:
			return visit(u.Elem())
		case *types.Array:
			return visit(u.Elem())
		case *types.Map:
			return visit(u.Elem())
		case *types.Struct:
			for i := range u.NumFields() {
				f := u.Field(i)
				if f.Exported() && reflect.StructTag(u.Tag(i)).Get("bson") != "-" && visit(f.Type()) {
					return true
				}
			}
		}
		return false
	}
	return visit(t)
}

// holdsUUID reports whether a value holds a UUID: by its type or, for a document that the
// expression spells out, by the types of its values.
func (c *checker) holdsUUID(e ast.Expr) bool {
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok {
		e = ast.Unparen(u.X)
	}
	t := c.TypesInfo.TypeOf(e)
	if t == nil {
		return false
	}
	if holds(t, isUUID) {
		return true
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok || marshalsItself(t) {
		return false
	}
	st := structOf(t)
	for i, elt := range lit.Elts {
		if st != nil && !isEncodedField(st, elt, i) {
			continue
		}
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			elt = kv.Value
		}
		if c.holdsUUID(elt) {
			return true
		}
	}
	return false
}

// isEncodedField reports whether the driver encodes the field that an element of a literal sets, the one
// of that index if it has no key.
func isEncodedField(st *types.Struct, elt ast.Expr, i int) bool {
	name := ""
	if kv, ok := elt.(*ast.KeyValueExpr); ok {
		if key, ok := kv.Key.(*ast.Ident); ok {
			name = key.Name
		}
	} else if i < st.NumFields() {
		name = st.Field(i).Name()
	}
	for i := range st.NumFields() {
		if f := st.Field(i); f.Name() == name {
			return f.Exported() && reflect.StructTag(st.Tag(i)).Get("bson") != "-"
		}
	}
	return false
}

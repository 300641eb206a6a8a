package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"strings"
)

// These are the rules of bsoncodec for types whose UUID the driver loses, or stores as a document.

// A refusal says why a registry of bsoncodec refuses a type.
type refusal struct {
	what    string // the type is …
	wayOut  string
	byValue bool // it is refused as a value only, and not behind a pointer or in a slice
	inside  bool // it is refused inside a document only
}

// refusalOf returns why a registry refuses a type of structs, or nil. A type of another kind is none, and neither is
// what contains one.
func (c *checker) refusalOf(t types.Type) *refusal {
	t = types.Unalias(t)
	named, ok := t.(*types.Named)
	st, isStruct := t.Underlying().(*types.Struct)
	if !ok || !isStruct || named.Obj().Pkg() == nil || isWithin(named.Obj().Pkg(), driver) || isOwnType(t) {
		return nil
	}
	r := c.shape(t, st)
	if r == nil || c.isKnown(t) {
		return nil
	}
	return r
}

// isOwnType reports whether bsoncodec registers a type itself, or gives it methods.
func isOwnType(t types.Type) bool {
	return typeName(t) == "github.com/google/uuid.NullUUID" || isNamed(t, library+"/uuidrep", fieldTypes...)
}

var fieldTypes = []string{"StandardUUID", "CSharpLegacyUUID", "JavaLegacyUUID", "PythonLegacyUUID", "StringUUID", "ID"}

// shape returns why the fields and the methods of a struct lose a UUID, or nil.
func (c *checker) shape(t types.Type, st *types.Struct) *refusal {
	if r := c.promoted(t, st); r != nil {
		return r
	}
	if marshals(t) {
		return nil
	}
	r := c.inlined(st)
	if r == nil {
		r = c.around(t, st)
	}
	if r == nil {
		return nil
	}
	if marshals(types.NewPointer(t)) {
		r.byValue = true
		r.what += ", whose methods for BSON belong to the pointer, so that the driver does not call them for a value"
		r.wayOut = "give MarshalBSONValue the receiver of a value"
	}
	return r
}

// around returns why a struct is refused that is a UUID or nothing to the driver.
func (c *checker) around(t types.Type, st *types.Struct) *refusal {
	fields, tagged := storedFields(st)
	switch {
	case len(fields) == 1 && !tagged && fields[0].Embedded() && fields[0].Exported() && c.isUUIDField(fields[0].Type()):
		return &refusal{inside: true, what: "a struct around a UUID, which the driver stores as a document",
			wayOut: "declare it as a UUID type, or call RegistryBuilder.RegisterUUIDType" + elsewhere}
	case len(fields) == 2 && !tagged && hasMethod(t, "Scan") && isOptional(fields, c.isUUIDField):
		return &refusal{inside: true, what: "a UUID that can be null, which the driver stores as a document",
			wayOut: "use uuid.NullUUID, or call RegistryBuilder.RegisterNullUUIDType" + elsewhere}
	case len(fields) == 2 && isOptional(fields, func(t types.Type) bool { return isOctets(t) }) && !uuidOfOptional(fields).Exported():
		return &refusal{what: "a UUID that can be null, which is not exported, so that the driver does not store it",
			wayOut: "call RegistryBuilder.RegisterNullUUIDType, or use uuid.NullUUID" + elsewhere}
	case !hasElement(st, map[types.Type]bool{}) && reachesUUID(st):
		r := &refusal{what: "a struct around a UUID that is not exported, which the driver stores as an empty document",
			wayOut: "call RegistryBuilder.RegisterUUIDType, or RegisterUUIDFunc for another shape" + elsewhere}
		if len(fields) == 1 && isOctets(fields[0].Type()) {
			r.wayOut = "call RegistryBuilder.RegisterUUIDType" + elsewhere
		}
		return r
	}
	return nil
}

// isUUIDField reports whether a field of a struct around a UUID is one.
func (c *checker) isUUIDField(t types.Type) bool { return isUUID(t) || isOctets(t) && c.isKnown(t) }

// storedFields returns the fields of a struct besides those named _ and those tagged "-", and whether one has a tag.
func storedFields(st *types.Struct) (fields []*types.Var, tagged bool) {
	for i := range st.NumFields() {
		tag, ok := reflect.StructTag(st.Tag(i)).Lookup("bson")
		if st.Field(i).Name() != "_" && tag != "-" {
			fields = append(fields, st.Field(i))
			tagged = tagged || ok && tag != ""
		}
	}
	return fields, tagged
}

// isOptional reports whether two fields are a UUID and a bool.
func isOptional(fields []*types.Var, isUUID func(types.Type) bool) bool {
	for i, f := range fields {
		b, ok := f.Type().Underlying().(*types.Basic)
		if ok && b.Kind() == types.Bool && isUUID(fields[1-i].Type()) {
			return true
		}
	}
	return false
}

// uuidOfOptional returns the field of two that is the UUID.
func uuidOfOptional(fields []*types.Var) *types.Var {
	if isOctets(fields[0].Type()) {
		return fields[0]
	}
	return fields[1]
}

// inlined returns why a struct is refused whose inline field loses a UUID, or nil.
func (c *checker) inlined(st *types.Struct) *refusal {
	for i := range st.NumFields() {
		f := st.Field(i)
		_, flags, _ := strings.Cut(reflect.StructTag(st.Tag(i)).Get("bson"), ",")
		if !strings.Contains(","+flags+",", ",inline,") || !f.Embedded() && !f.Exported() {
			continue
		}
		inner := structOf(f.Type())
		if inner == nil || !reachesUUID(inner) {
			continue
		}
		switch {
		case !f.Exported():
			return &refusal{what: "a struct with the inline field " + f.Name() + ", which the driver leaves out with its UUID, because it is not exported",
				wayOut: "export the type of the field, or give the field a name"}
		case !hasElement(inner, map[types.Type]bool{}):
			return &refusal{what: "a struct whose inline field " + f.Name() + " has a UUID that is not exported, which the driver does not store",
				wayOut: "give the field a key of its own"}
		}
	}
	return nil
}

// promoted returns why a struct is refused that has its methods for BSON from an embedded field, beside fields that are
// not stored then, or nil.
func (c *checker) promoted(t types.Type, st *types.Struct) *refusal {
	for _, name := range []string{"MarshalBSONValue", "MarshalBSON"} {
		obj, index, _ := types.LookupFieldOrMethod(t, true, nil, name)
		f, ok := obj.(*types.Func)
		if !ok || len(index) < 2 || !isMarshaler(f) {
			continue
		}
		for i := range st.NumFields() {
			if other := st.Field(i); i != index[0] && other.Exported() && reflect.StructTag(st.Tag(i)).Get("bson") != "-" {
				return &refusal{
					what: fmt.Sprintf("a struct with the method %s of the field %s, which it embeds, so that the driver stores that field alone and not %s",
						name, st.Field(index[0]).Name(), other.Name()),
					wayOut: "give the embedded field a name",
				}
			}
		}
	}
	return nil
}

// isMarshaler reports whether a method MarshalBSONValue or MarshalBSON has the form of version 2 of the driver.
func isMarshaler(f *types.Func) bool {
	results := f.Signature().Results()
	n := results.Len()
	if f.Signature().Params().Len() != 0 || n < 2 || results.At(n-2).Type().String() != "[]byte" {
		return false
	}
	if f.Name() == "MarshalBSON" {
		return n == 2
	}
	return n == 3 && !isOtherByte(results.At(0).Type())
}

// marshals reports whether the methods of t, not those of a pointer to it, marshal it, in any form.
func marshals(t types.Type) bool {
	for _, name := range []string{"MarshalBSONValue", "MarshalBSON"} {
		obj, _, _ := types.LookupFieldOrMethod(t, false, nil, name)
		if _, ok := obj.(*types.Func); ok {
			return true
		}
	}
	return false
}

// hasElement reports whether the document of a struct can have an element.
func hasElement(st *types.Struct, seen map[types.Type]bool) bool {
	if seen[st] {
		return false
	}
	seen[st] = true
	for i := range st.NumFields() {
		f, tag := st.Field(i), reflect.StructTag(st.Tag(i)).Get("bson")
		_, flags, _ := strings.Cut(tag, ",")
		switch inner := structOf(f.Type()); {
		case !f.Exported() || tag == "-":
		case strings.Contains(","+flags+",", ",inline,") && inner != nil:
			if hasElement(inner, seen) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// reachesUUID reports whether a UUID is in a value of a type: in its fields, those that are not exported too, behind
// pointers, and in arrays, slices and maps. Fields tagged "-" do not count.
func reachesUUID(t types.Type) bool {
	seen := map[types.Type]bool{}
	var visit func(t types.Type) bool
	visit = func(t types.Type) bool {
		t = types.Unalias(t)
		if seen[t] {
			return false
		}
		seen[t] = true
		if isOctets(t) {
			return true
		}
		if named, ok := t.(*types.Named); ok && isWithin(named.Obj().Pkg(), driver) {
			return false // a client, a collection
		}
		if isNamed(t, "sync/atomic", "Pointer") {
			return visit(t.(*types.Named).TypeArgs().At(0))
		}
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			return visit(u.Elem())
		case *types.Slice:
			return visit(u.Elem())
		case *types.Array:
			return visit(u.Elem())
		case *types.Map:
			return visit(u.Elem()) || visit(u.Key())
		case *types.Struct:
			for i := range u.NumFields() {
				if reflect.StructTag(u.Tag(i)).Get("bson") != "-" && visit(u.Field(i).Type()) {
					return true
				}
			}
		}
		return false
	}
	return visit(t)
}

// findDeclared reports the types of this package whose declaration shows that they are documents, or values in them, and
// that a registry refuses: they have struct tags for BSON, on the field that is lost for instance.
func (c *checker) findDeclared() {
	c.visit((*ast.TypeSpec)(nil), func(n ast.Node, _ []ast.Node) {
		spec := n.(*ast.TypeSpec)
		obj, ok := c.TypesInfo.Defs[spec.Name].(*types.TypeName)
		if !ok || obj.IsAlias() {
			return
		}
		st, ok := obj.Type().Underlying().(*types.Struct)
		if !ok {
			return
		}
		tagged := false
		for i := range st.NumFields() {
			tagged = tagged || bsonTagged(st.Tag(i)) && reflect.StructTag(st.Tag(i)).Get("bson") != "-"
		}
		if !tagged {
			return
		}
		if r := c.refusalOf(obj.Type()); r != nil && !r.byValue {
			c.refusedType(spec.Name, obj.Type(), r, "")
		}
	})
}

// refusedType reports a type that a registry refuses.
func (c *checker) refusedType(at ast.Node, t types.Type, r *refusal, where string) {
	c.report(at, "unregistered", fmt.Sprintf("a registry of bsoncodec refuses %s, %s%s: %s",
		types.TypeString(t, types.RelativeTo(c.Pkg)), r.what, where, r.wayOut))
}

package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
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
	if !ok || !isStruct || isWithin(named.Obj().Pkg(), driver) || typeName(t) == "github.com/google/uuid.NullUUID" {
		return nil
	}
	r := c.shape(t, st)
	if r == nil || c.isKnown(t) {
		return nil
	}
	return r
}

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
	case len(fields) == 1 && !tagged && fields[0].Embedded() && fields[0].Exported() && c.isUUIDField(fields[0].Type(), 8):
		return &refusal{inside: true, what: "a struct around a UUID, which the driver stores as a document",
			wayOut: "declare it as a UUID type, or call RegistryBuilder.RegisterUUIDType" + elsewhere}
	case !hasElement(st, map[types.Type]bool{}):
		if !c.reaches(st) {
			return nil
		}
		r := &refusal{what: "a struct around a UUID that is not exported, which the driver stores as an empty document",
			wayOut: "call RegistryBuilder.RegisterUUIDType" + elsewhere}
		if _, _, optional := c.optional(fields); optional {
			r.wayOut = "call RegistryBuilder.RegisterNullUUIDType" + elsewhere
		} else if len(fields) != 1 || !isOctets(fields[0].Type()) {
			r.wayOut = "call RegisterUUIDFunc of bsoncodec" + elsewhere
		}
		return r
	}
	id, valid, ok := c.optional(fields)
	switch {
	case ok && !id.Exported():
		return &refusal{what: "a bool and a UUID that is not exported, of which the driver stores the bool alone",
			wayOut: "call RegistryBuilder.RegisterNullUUIDType, or use uuid.NullUUID" + elsewhere}
	case ok && !tagged && valid.Name() == "Valid" && hasMethod(t, "Scan"):
		return &refusal{inside: true, what: "a UUID that can be null, which the driver stores as a document",
			wayOut: "use uuid.NullUUID, or call RegistryBuilder.RegisterNullUUIDType" + elsewhere}
	}
	return nil
}

// isUUIDField reports whether a field is a UUID, a pointer to one or a struct around one, of at most depth of these.
func (c *checker) isUUIDField(t types.Type, depth int) bool {
	if depth == 0 || isOctets(t) {
		return depth > 0 && c.isOctetsOfUUID(t)
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return c.isUUIDField(u.Elem(), depth-1)
	case *types.Struct:
		fields, tagged := storedFields(u)
		return len(fields) == 1 && !tagged && (fields[0].Embedded() || !fields[0].Exported()) && c.isUUIDField(fields[0].Type(), depth-1)
	}
	return false
}

// isOctetsOfUUID reports whether a type of kind [16]byte is one of UUIDs to a registry: registered as one, or refused.
func (c *checker) isOctetsOfUUID(t types.Type) bool { return c.isUUIDType(t) || !c.isKnown(t) }

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

// optional returns the fields of a struct of a UUID and a bool.
func (c *checker) optional(fields []*types.Var) (id, valid *types.Var, ok bool) {
	for i := 0; len(fields) == 2 && i < 2; i++ {
		b, ok := fields[i].Type().Underlying().(*types.Basic)
		if ok && b.Kind() == types.Bool && c.isUUIDField(fields[1-i].Type(), 8) {
			return fields[1-i], fields[i], true
		}
	}
	return nil, nil, false
}

// inlined returns why a struct is refused whose inline field loses a UUID, or nil.
func (c *checker) inlined(st *types.Struct) *refusal {
	for i := range st.NumFields() {
		f := st.Field(i)
		if !isInline(reflect.StructTag(st.Tag(i)).Get("bson")) || !f.Embedded() && !f.Exported() {
			continue
		}
		inner := structOf(f.Type())
		if inner == nil || !c.reaches(inner) {
			continue
		}
		fields, tagged := storedFields(inner)
		id, _, optional := c.optional(fields)
		switch {
		case !f.Exported():
			return &refusal{what: "a struct with the inline field " + f.Name() + ", which the driver leaves out with its UUID, because it is not exported",
				wayOut: "export the type of the field, or give the field a name"}
		case !hasElement(inner, map[types.Type]bool{}), optional && !id.Exported():
			return &refusal{what: "a struct whose inline field " + f.Name() + " has a UUID that is not exported, which the driver does not store",
				wayOut: "give the field a key of its own"}
		case len(fields) == 1 && !tagged && fields[0].Embedded() && marshals(types.NewPointer(derefed(f.Type()))):
			return &refusal{what: "a struct whose inline field " + f.Name() + " is a UUID with methods for BSON, which the driver does not call then",
				wayOut: "give the field a key of its own"}
		}
	}
	return nil
}

// isInline reports whether a struct tag has the option inline.
func isInline(tag string) bool {
	_, options, _ := strings.Cut(tag, ",")
	return slices.Contains(strings.Split(options, ","), "inline")
}

// derefed returns what t points to, or t.
func derefed(t types.Type) types.Type {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// promoted returns why a struct is refused that has a method for BSON from an embedded field, beside fields that are not
// stored then, or nil.
func (c *checker) promoted(t types.Type, st *types.Struct) *refusal {
	for _, names := range [][]string{{"MarshalBSONValue", "MarshalBSON"}, {"UnmarshalBSONValue", "UnmarshalBSON"}} {
		for _, name := range names { // the driver calls the first
			obj, index, _ := types.LookupFieldOrMethod(t, true, nil, name)
			f, ok := obj.(*types.Func)
			if !ok || !isForBSON(f) {
				continue
			}
			if field, lost := lostFields(st, index); lost != "" {
				return &refusal{
					what: fmt.Sprintf("a struct with the method %s of the field %s, which it embeds, so that the driver stores that field alone and not %s",
						name, field, lost),
					wayOut: "give the embedded field a name, or call RegistryBuilder.RegisterDocumentType" + elsewhere,
				}
			}
			break
		}
	}
	return nil
}

// lostFields returns the embedded field of a struct whose method has the index, and a field that the method does not know,
// which can be one of the embedded struct.
func lostFields(st *types.Struct, index []int) (embedded, lost string) {
	for _, at := range index[:len(index)-1] {
		for i := range st.NumFields() {
			if f := st.Field(i); i != at && lost == "" && isStoredField(f) && reflect.StructTag(st.Tag(i)).Get("bson") != "-" {
				lost = f.Name()
			}
		}
		f := st.Field(at)
		if embedded != "" {
			embedded += "."
		}
		embedded += f.Name()
		if st = structOf(f.Type()); st == nil {
			break // an interface
		}
	}
	return embedded, lost
}

// isStoredField reports whether the driver would store a field.
func isStoredField(f *types.Var) bool {
	switch u := f.Type().Underlying().(type) {
	case *types.Signature, *types.Chan:
		return false
	case *types.Struct:
		if u.NumFields() == 0 {
			return false
		}
	}
	return f.Exported() && f.Name() != "_"
}

// isForBSON reports whether a method has the form of version 2 of the driver.
func isForBSON(f *types.Func) bool {
	switch f.Name() {
	case "MarshalBSON":
		return signatureOf(f) == "func() ([]byte, error)"
	case "MarshalBSONValue":
		return signatureOf(f) == "func() (byte, []byte, error)"
	case "UnmarshalBSON":
		return signatureOf(f) == "func([]byte) (error)"
	}
	return signatureOf(f) == "func(byte, []byte) (error)"
}

// signatureOf returns the types of the parameters and the results of a function.
func signatureOf(f *types.Func) string {
	list := func(vars *types.Tuple) string {
		var names []string
		for v := range vars.Variables() {
			names = append(names, strings.ReplaceAll(types.TypeString(v.Type(), nil), "uint8", "byte"))
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	return "func" + list(f.Signature().Params()) + " " + list(f.Signature().Results())
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
		switch inner := structOf(f.Type()); {
		case !f.Exported() || tag == "-":
		case isInline(tag) && inner != nil:
			if hasElement(inner, seen) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// reaches reports whether a UUID is in a value of a type: in its fields, those that are not exported too, behind
// pointers, and in arrays, slices and maps. Fields tagged "-" do not count.
func (c *checker) reaches(t types.Type) bool {
	seen := map[types.Type]bool{}
	var visit func(t types.Type) bool
	visit = func(t types.Type) bool {
		t = types.Unalias(t)
		if seen[t] {
			return false
		}
		seen[t] = true
		if isOctets(t) {
			return c.isOctetsOfUUID(t)
		}
		if named, ok := t.(*types.Named); ok && isWithin(named.Obj().Pkg(), driver) {
			return false // a client, a collection
		}
		if isNamed(t, "sync/atomic", "Pointer") || isNamed(t, "weak", "Pointer") {
			return visit(t.(*types.Named).TypeArgs().At(0))
		}
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			return visit(u.Elem())
		case *types.Slice:
			return visit(u.Elem())
		case *types.Array:
			return u.Len() > 0 && visit(u.Elem())
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

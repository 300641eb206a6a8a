package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"
)

// idsFact is the kind of the ids that a function makes, see kindOf: a method NewID, or a function that
// becomes an autoid.SourceFunc.
type idsFact struct{ Kind string }

func (*idsFact) AFact()           {}
func (f *idsFact) String() string { return "ids: " + f.Kind }

// The kinds of ids and of fields. An id fits a field of its own kind.
const (
	objectID = "an ObjectID"
	aUUID    = "a UUID"
	text     = "text"
	number   = "a number"
)

// misfits holds, for each kind of ids, the kinds of fields into which no registry and no option of a
// client reads it. Text can be read into other kinds, and others into text.
var misfits = map[string][]string{
	objectID: {aUUID, number},
	aUUID:    {objectID, number},
	text:     {number},
	number:   {objectID, aUUID, text},
}

// kindOf returns the kind of an id or a field, or "" for any other type.
func kindOf(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	switch {
	case isBSON(t, "ObjectID"):
		return objectID
	case isNamed(t, library+"/uuidrep", "StandardUUID", "CSharpLegacyUUID", "JavaLegacyUUID", "PythonLegacyUUID"):
		return aUUID
	case hasMethod(t, "MarshalBSONValue"), hasMethod(t, "UnmarshalBSONValue"), marshalsItself(t):
		return ""
	case isUUID(t):
		return aUUID
	}
	if b, ok := t.Underlying().(*types.Basic); ok {
		switch {
		case b.Info()&types.IsString != 0:
			return text
		case b.Info()&types.IsInteger != 0:
			return number
		}
	}
	return ""
}

// exportIDs exports a fact for each function of the form func() (any, error) whose ids have one kind.
func (c *checker) exportIDs() {
	for f := range c.decls {
		if kind := c.kindOfIDs(f); kind != "" {
			c.ExportObjectFact(f, &idsFact{kind})
		}
	}
}

// kindOfIDs returns the kind of the ids that a function of this package or another one makes, or "".
func (c *checker) kindOfIDs(f *types.Func) string {
	sig := f.Signature()
	if sig.Params().Len() != 0 || sig.Results().Len() != 2 || !isAny(sig.Results().At(0).Type()) {
		return ""
	}
	if decl := c.decls[f.Origin()]; decl != nil {
		return c.kindOfResults(returned(decl.Body))
	}
	fact := new(idsFact)
	c.ImportObjectFact(f.Origin(), fact)
	return fact.Kind
}

func (c *checker) kindOfResults(results []ast.Expr) string {
	kind := ""
	for _, e := range results {
		if c.TypesInfo.Types[e].IsNil() {
			continue
		}
		t := c.typeOf(e)
		if tuple, ok := t.(*types.Tuple); ok {
			t = tuple.At(0).Type()
		}
		k := kindOf(t)
		if k == "" || kind != "" && k != kind {
			return ""
		}
		kind = k
	}
	return kind
}

func isAny(t types.Type) bool {
	i, ok := t.Underlying().(*types.Interface)
	return ok && i.Empty()
}

// kindOfSource returns the kind of the ids of a source, or "" if it is not known.
func (c *checker) kindOfSource(src ast.Expr) string { return c.kindOfConverted(src, 4) }

// kindOfConverted is kindOfSource for a source that was converted at most depth times.
func (c *checker) kindOfConverted(src ast.Expr, depth int) string {
	if depth == 0 {
		return ""
	}
	return same(c.origins(src), func(e ast.Expr) string {
		if call, ok := e.(*ast.CallExpr); ok && c.TypesInfo.Types[call.Fun].IsType() && len(call.Args) == 1 {
			if isNamed(c.typeOf(call), autoid, "SourceFunc") {
				return same(c.origins(call.Args[0]), c.kindOfFunction)
			}
			return c.kindOfConverted(call.Args[0], depth-1) // autoid.Source(src)
		}
		if isNamed(c.typeOf(e), autoid, "SourceFunc", "Source") {
			return ""
		}
		if isNamed(c.typeOf(e), library+"/uuidgen", "Generator") {
			return aUUID // whose NewID calls the format of another package
		}
		newID, _, _ := types.LookupFieldOrMethod(c.typeOf(e), true, c.Pkg, "NewID")
		if f, ok := newID.(*types.Func); ok {
			return c.kindOfIDs(f)
		}
		return ""
	})
}

// kindOfFunction returns the kind of the ids of a function literal, or of a named function or method.
func (c *checker) kindOfFunction(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.FuncLit:
		return c.kindOfResults(returned(e.Body))
	case *ast.SelectorExpr:
		return c.kindOfFunction(e.Sel)
	case *ast.Ident:
		if f, ok := c.TypesInfo.Uses[e].(*types.Func); ok {
			return c.kindOfIDs(f)
		}
	}
	return ""
}

// same returns what f returns for all expressions alike, or "".
func same(es []ast.Expr, f func(ast.Expr) string) string {
	kind := ""
	for i, e := range es {
		k := f(e)
		if i > 0 && k != kind {
			return ""
		}
		kind = k
	}
	return kind
}

// kindOfCollection returns the kind of the ids of an autoid.Collection, or "" if it is not known.
func (c *checker) kindOfCollection(coll ast.Expr) string {
	return same(c.origins(coll), func(e ast.Expr) string {
		if !c.calls(e, autoid, "Wrap") {
			return ""
		}
		call := e.(*ast.CallExpr)
		for i := 2; i < len(call.Args); i++ {
			if opt, ok := call.Args[i].(*ast.CallExpr); !ok || !c.callsPackage(opt, autoid) {
				return "" // it can be WithMisfitIDs
			}
		}
		return c.kindOfSource(call.Args[1])
	})
}

// insert reports documents whose _id the source of an autoid.Collection cannot fill in.
func (c *checker) insert(call *ast.CallExpr, f *types.Func) {
	if len(call.Args) < 2 {
		return
	}
	kind, filled := "", false // filled: the source replaces a zero _id without omitempty, too
	switch f.Name() {
	case "InsertOne", "InsertMany":
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
			kind = c.kindOfCollection(sel.X)
		}
	case "Document", "Assign":
		kind = c.kindOfSource(call.Args[0])
		filled = f.Name() == "Assign"
	default:
		return
	}
	for _, doc := range c.elements(call.Args[1]) {
		c.insertOne(doc, kind, filled)
	}
}

// elements returns the elements that a literal of a slice spells out, or e itself.
func (c *checker) elements(e ast.Expr) []ast.Expr {
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	if _, slice := c.typeOf(e).Underlying().(*types.Slice); !ok || !slice || isBSON(c.typeOf(e), "D") {
		return []ast.Expr{e}
	}
	return lit.Elts
}

func (c *checker) insertOne(doc ast.Expr, kind string, filled bool) {
	t := c.typeOf(doc)
	for range 2 {
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice: // of InsertMany
			t = u.Elem()
		}
	}
	if marshalsItself(t) {
		return
	}
	name := types.TypeString(t, types.RelativeTo(c.Pkg))
	id, omitempty := idField(t)
	if id == nil {
		if other := fieldWithKey(t, "id"); other != nil && kind != "" && kindOf(other.Type()) == kind {
			c.report(doc, "id", fmt.Sprintf("the field %s of %s has the key id: the source adds an _id beside it; "+
				"the tag bson:\"_id,omitempty\" makes it the _id", other.Name(), name))
		}
		return
	}
	of := kindOf(id.Type())
	for _, misfit := range misfits[kind] {
		if of == misfit && !c.names("WithMisfitIDs") {
			c.report(doc, "id", fmt.Sprintf("the source makes %s, and the _id of %s is %s: the insert is refused; "+
				"use a source of that kind, or give the field the type of the ids", kind, name, of))
			return
		}
	}
	if !filled && !omitempty && !c.isSet("WithZeroIDAsMissing") && (isUUID(id.Type()) || isBSON(id.Type(), "ObjectID")) {
		c.report(doc, "id", "the _id of "+name+
			" has no omitempty: a zero _id is refused, and never replaced by the source of the autoid.Collection")
	}
}

// insertPast reports inserts of documents without an _id into the collection of the driver that an autoid.Collection
// embeds: the driver makes their ids.
func (c *checker) insertPast(call *ast.CallExpr, f *types.Func) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Name() != "InsertOne" && f.Name() != "InsertMany" || len(call.Args) < 2 {
		return
	}
	for _, e := range c.origins(sel.X) {
		embedded, ok := e.(*ast.SelectorExpr)
		if !ok || embedded.Sel.Name != "Collection" || !isNamed(c.typeOf(embedded.X), autoid, "Collection") {
			return
		}
	}
	for _, doc := range c.elements(call.Args[1]) {
		if c.lacksID(doc) {
			c.report(doc, "id", "this insert goes past the autoid.Collection, whose source makes no _id for it, but the driver an ObjectID: "+
				"call "+f.Name()+" of the autoid.Collection")
			return
		}
	}
}

// lacksID reports whether a document has no _id: it is spelled out without one, or it is a struct without a field for it,
// or with one that this package never sets.
func (c *checker) lacksID(doc ast.Expr) bool {
	if elements := c.spelledOut(doc); elements != nil {
		return !slices.ContainsFunc(elements, func(e condition) bool { return e.path == "_id" || e.path == "" })
	}
	t := c.typeOf(doc)
	st := structOf(t)
	if st == nil || marshalsItself(t) {
		return false
	}
	id, _ := idField(t)
	return id == nil || !c.names("Assign") && len(c.flow().values[id]) == 0 && !c.flow().unknown[id] && id.Pkg() == c.Pkg
}

// idField returns the field of a struct that is the _id, which can be in an inline struct, and whether it
// has omitempty.
func idField(t types.Type) (field *types.Var, omitempty bool) {
	eachField(t, func(f *types.Var, key, flags string) {
		if key == "_id" && field == nil {
			field, omitempty = f, strings.Contains(flags, ",omitempty,")
		}
	})
	return field, omitempty
}

func fieldWithKey(t types.Type, want string) (field *types.Var) {
	eachField(t, func(f *types.Var, key, _ string) {
		if key == want {
			field = f
		}
	})
	return field
}

// eachField calls f for the fields of a struct, and of the inline structs in it, that are stored, with
// their key and their flags: ",omitempty,".
func eachField(t types.Type, f func(field *types.Var, key, flags string)) {
	seen := map[types.Type]bool{}
	var visit func(t types.Type)
	visit = func(t types.Type) {
		st := structOf(t)
		if st == nil || seen[t] {
			return
		}
		seen[t] = true
		for i := range st.NumFields() {
			field, tag := st.Field(i), reflect.StructTag(st.Tag(i)).Get("bson")
			key, flags, _ := strings.Cut(tag, ",")
			flags = "," + flags + ","
			switch {
			case tag == "-" || !field.Exported() && !field.Embedded():
			case strings.Contains(flags, ",inline,"):
				visit(field.Type())
			case !field.Exported():
			case key == "":
				f(field, strings.ToLower(field.Name()), flags)
			default:
				f(field, key, flags)
			}
		}
	}
	visit(t)
}

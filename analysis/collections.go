package analysis

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// The argument of each method of a collection that is a filter, and the one that is an update, or 0.
var filterOf = map[string][2]int{
	"Find": {1, 0}, "FindOne": {1, 0}, "CountDocuments": {1, 0}, "DeleteOne": {1, 0}, "DeleteMany": {1, 0},
	"FindOneAndDelete": {1, 0}, "FindOneAndReplace": {1, 0}, "FindOneAndUpdate": {1, 2}, "ReplaceOne": {1, 0},
	"UpdateOne": {1, 2}, "UpdateMany": {1, 2}, "UpdateByID": {0, 2}, "Distinct": {2, 0},
}

// The argument of each method of a collection that is a document of it, or documents.
var documentOf = map[string]int{"InsertOne": 1, "InsertMany": 1, "ReplaceOne": 2, "FindOneAndReplace": 2}

// isCollection reports whether an expression is a collection of the driver or of this library.
func (c *checker) isCollection(e ast.Expr) bool {
	t := c.typeOf(e)
	return isNamed(t, driver+"/mongo", "Collection") || isNamed(t, autoid, "Collection") || isNamed(t, library+"/mixedrep", "Collection")
}

// methodOf returns the receiver and the name of the method that a call is one of, or nil.
func (c *checker) methodOf(call *ast.CallExpr) (ast.Expr, string) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	f, isFunc := typeutil.Callee(c.TypesInfo, call).(*types.Func)
	if !ok || !isFunc || f.Signature().Recv() == nil {
		return nil, ""
	}
	return sel.X, f.Name()
}

// A collectionKey is what a collection is known by in a package: the variable that holds it, or its name.
type collectionKey any

// keysOf returns what a collection is known by.
func (c *checker) keysOf(coll ast.Expr) (keys []collectionKey) {
	for range 4 { // through autoid.Wrap and the like
		if v := c.variable(coll); v != nil {
			keys = append(keys, v)
		}
		origins := c.origins(coll)
		if len(origins) != 1 {
			return keys
		}
		switch x := origins[0].(type) {
		case *ast.CallExpr:
			if recv, name := c.methodOf(x); name == "Collection" && recv != nil && len(x.Args) > 0 {
				if s := c.constant(x.Args[0]); s != "" {
					keys = append(keys, s)
				}
				return keys
			}
			if f, ok := typeutil.Callee(c.TypesInfo, x).(*types.Func); !ok || !isWithin(f.Pkg(), library) || len(x.Args) == 0 {
				return keys
			}
			coll = x.Args[0]
		case *ast.SelectorExpr:
			if v := c.variable(x); v != nil {
				keys = append(keys, v)
			}
			if x.Sel.Name != "Collection" { // of a wrapped one
				return keys
			}
			coll = x.X
		default:
			if v := c.variable(x); v != nil {
				keys = append(keys, v)
			}
			return keys
		}
	}
	return keys
}

// structsOf returns the structs that documents of collections are, as far as the package shows: it inserts them into the
// collection, or decodes the result of a find into them.
func (c *checker) structsOf() map[collectionKey][]types.Type {
	found := map[collectionKey][]types.Type{}
	add := func(coll ast.Expr, t types.Type) {
		for range 4 { // behind pointers, and in slices
			switch u := t.Underlying().(type) {
			case *types.Pointer:
				t = u.Elem()
			case *types.Slice:
				t = u.Elem()
			}
		}
		if _, ok := t.Underlying().(*types.Struct); !ok || marshalsItself(t) {
			return
		}
		for _, key := range c.keysOf(coll) {
			if !slices.ContainsFunc(found[key], func(other types.Type) bool { return types.Identical(t, other) }) {
				found[key] = append(found[key], t)
			}
		}
	}
	// findOf returns the collection whose find a result or a cursor is from, or nil.
	findOf := func(result ast.Expr) ast.Expr {
		origins := c.origins(result)
		if len(origins) != 1 {
			return nil
		}
		call, ok := origins[0].(*ast.CallExpr)
		if !ok {
			return nil
		}
		recv, name := c.methodOf(call)
		if recv == nil || !strings.HasPrefix(name, "Find") || !c.isCollection(recv) {
			return nil
		}
		return recv
	}
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		recv, name := c.methodOf(call)
		switch {
		case recv == nil:
			index, ok := ast.Unparen(call.Fun).(*ast.IndexExpr) // cursors.One[T](coll.FindOne(…))
			if !ok || !c.callsPackage(call, library+"/cursors") {
				return
			}
			for _, arg := range call.Args[:min(2, len(call.Args))] {
				if coll := findOf(arg); coll != nil {
					add(coll, c.typeOf(index.Index))
				}
			}
		case c.isCollection(recv):
			if i := documentOf[name]; i > 0 && i < len(call.Args) {
				for _, doc := range c.elements(call.Args[i]) {
					add(recv, c.typeOf(doc))
				}
			}
		case name == "Decode" && len(call.Args) == 1, name == "All" && len(call.Args) == 2:
			if coll := findOf(recv); coll != nil {
				add(coll, c.typeOf(call.Args[len(call.Args)-1]))
			}
		}
	})
	return found
}

// A condition is a value that a filter or an update compares or stores under a key.
type condition struct {
	path  string
	value ast.Expr
}

// conditions returns those that a literal of a filter spells out.
func (c *checker) conditions(filter ast.Expr, prefix string, depth int) (found []condition) {
	if depth == 0 {
		return nil
	}
	for _, e := range c.spelledOut(filter) {
		key, value := e.path, e.value
		switch {
		case key == "$and" || key == "$or" || key == "$nor":
			for _, f := range c.listed(value) {
				found = append(found, c.conditions(f, prefix, depth-1)...)
			}
		case strings.HasPrefix(key, "$") || key == "":
		default:
			found = append(found, c.operators(prefix+key, value, depth-1)...)
		}
	}
	return found
}

// operators returns the conditions on the key path that are a value, or a document of operators.
func (c *checker) operators(path string, value ast.Expr, depth int) (found []condition) {
	ops := c.spelledOut(value)
	if depth == 0 || len(ops) > 0 && !strings.HasPrefix(ops[0].path, "$") {
		return nil
	}
	if len(ops) == 0 {
		return []condition{{path, value}}
	}
	for _, op := range ops {
		switch op.path {
		case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte":
			found = append(found, condition{path, op.value})
		case "$in", "$nin", "$all", "$each":
			for _, e := range c.listed(op.value) {
				found = append(found, condition{path, e})
			}
		case "$not":
			found = append(found, c.operators(path, op.value, depth-1)...)
		case "$elemMatch":
			if inner := c.spelledOut(op.value); len(inner) > 0 && strings.HasPrefix(inner[0].path, "$") {
				found = append(found, c.operators(path, op.value, depth-1)...)
			} else {
				found = append(found, c.conditions(op.value, path+".", depth-1)...)
			}
		}
	}
	return found
}

// updates returns what a literal of an update stores or compares.
func (c *checker) updates(update ast.Expr) (found []condition) {
	for _, op := range c.spelledOut(update) {
		switch op.path {
		case "$set", "$setOnInsert", "$push", "$addToSet", "$pull", "$min", "$max":
			for _, e := range c.spelledOut(op.value) {
				found = append(found, c.operators(e.path, e.value, 4)...)
			}
		case "$pullAll":
			for _, e := range c.spelledOut(op.value) {
				for _, value := range c.listed(e.value) {
					found = append(found, condition{e.path, value})
				}
			}
		}
	}
	return found
}

// spelledOut returns the elements of a document that is a literal, or a variable that is given one.
func (c *checker) spelledOut(e ast.Expr) (elements []condition) {
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = ast.Unparen(u.X)
	}
	if from := c.once(c.variable(e)); from != nil {
		e = ast.Unparen(from)
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, elt := range lit.Elts {
		switch elt := ast.Unparen(elt).(type) {
		case *ast.KeyValueExpr: // of a map
			if key := c.TypesInfo.Types[elt.Key].Value; key != nil && key.Kind() == constant.String {
				elements = append(elements, condition{constant.StringVal(key), elt.Value})
			}
		case *ast.CompositeLit:
			if isBSON(c.typeOf(elt), "E") && len(elt.Elts) == 2 {
				key, value := elt.Elts[0], elt.Elts[1]
				if kv, ok := key.(*ast.KeyValueExpr); ok {
					key = kv.Value
				}
				if kv, ok := value.(*ast.KeyValueExpr); ok {
					value = kv.Value
				}
				elements = append(elements, condition{c.constant(key), value})
			}
		}
	}
	if !holdsAny(c.typeOf(lit)) && !isBSON(c.typeOf(lit), "D") {
		return nil
	}
	return elements
}

// listed returns the elements of a list that is a literal, or a variable that is given one, or else the list itself.
func (c *checker) listed(e ast.Expr) []ast.Expr {
	if from := c.once(c.variable(e)); from != nil {
		if lit, ok := ast.Unparen(from).(*ast.CompositeLit); ok {
			e = lit
		}
	}
	lit, ok := ast.Unparen(e).(*ast.CompositeLit)
	if _, slice := c.typeOf(e).Underlying().(*types.Slice); !ok || !slice || isBSON(c.typeOf(e), "D") {
		return []ast.Expr{e}
	}
	return lit.Elts
}

// fieldAt returns the field of a struct with a dotted path, or nil.
func fieldAt(t types.Type, path string) *types.Var {
	key, rest, nested := strings.Cut(path, ".")
	f := fieldWithKey(t, key)
	for f != nil && nested {
		next, _, _ := strings.Cut(rest, ".")
		if _, err := strconv.Atoi(next); err != nil && next != "$" && !strings.HasPrefix(next, "$[") {
			break
		}
		_, rest, nested = strings.Cut(rest, ".") // of an element of an array
	}
	if f == nil || !nested {
		return f
	}
	element, _ := elementOf(f.Type(), true)
	return fieldAt(element, rest)
}

// The ways to store a UUID that types tell apart.
const (
	asClient = "the client's representation" // of a type that the registry encodes
	asText   = "text"
)

// storage returns how a UUID of a type is stored: as text, in a representation, or in that of the client. It is "" for
// a type that is not one of UUIDs or of text.
func (c *checker) storage(t types.Type) string {
	t, _ = elementOf(t, true)
	switch {
	case isNamed(t, library+"/uuidrep", "StringUUID"):
		return asText
	case isNamed(t, library+"/uuidrep", "StandardUUID"), isNamed(t, library+"/uuidrep", "ID") && !c.isKnown(t):
		return "standard"
	case isNamed(t, library+"/uuidrep", "CSharpLegacyUUID"):
		return "csharpLegacy"
	case isNamed(t, library+"/uuidrep", "JavaLegacyUUID"):
		return "javaLegacy"
	case isNamed(t, library+"/uuidrep", "PythonLegacyUUID"):
		return "pythonLegacy"
	case c.isRegisteredUUID(t):
		return asClient
	case marshalsItself(t):
		return ""
	case c.isUUIDType(t):
		return asClient
	}
	if b, ok := t.Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 && !c.hasCodec(t) {
		return asText
	}
	return ""
}

// hasCodec reports whether a named type has a codec of the module's, as far as its text tells.
func (c *checker) hasCodec(t types.Type) bool { return typeName(t) != "" && c.isKnown(t) }

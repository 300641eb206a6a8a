package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// findFilters reports values of filters and updates that equal no UUID that is stored under their key: its text, or one
// in another representation. How values are stored is told by the structs of the collection or, for the text of a UUID,
// by those that the package declares, if all agree on the key.
func (c *checker) findFilters() {
	f := &filters{checker: c, structs: c.structsOf(), judged: map[ast.Expr]bool{}}
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		recv, name := c.methodOf(call)
		args, ok := filterOf[name]
		if recv == nil || !ok || !c.isCollection(recv) {
			return
		}
		if i := args[0]; i > 0 && i < len(call.Args) {
			f.judge(recv, c.conditions(call.Args[i], "", 8))
		}
		if i := args[1]; i > 0 && i < len(call.Args) {
			f.judge(recv, c.updates(call.Args[i]))
		}
		if name == "UpdateByID" && len(call.Args) > 1 {
			f.judge(recv, []condition{{"_id", call.Args[1]}})
		}
	})
	f.findTexts()
}

type filters struct {
	*checker
	structs map[collectionKey][]types.Type
	judged  map[ast.Expr]bool // the values whose collection tells how they are stored
}

// judge reports the values that differ from how the structs of a collection store them.
func (f *filters) judge(coll ast.Expr, conditions []condition) {
	var structs []types.Type
	for _, key := range f.keysOf(coll) {
		structs = append(structs, f.structs[key]...)
	}
	for _, cond := range conditions {
		stored := ""
		var field *types.Var
		var in types.Type
		agree := true
		for _, t := range structs {
			if v := fieldAt(t, cond.path); v != nil {
				s := f.storage(v.Type())
				agree = agree && s != "" && (stored == "" || s == stored)
				stored, field, in = s, v, t
			}
		}
		if field == nil {
			continue
		}
		f.judged[ast.Unparen(cond.value)] = true
		if agree {
			f.compare(coll, cond, stored, path.Base(typeString(in))+"."+field.Name())
		}
	}
}

// compare reports a value that is stored in another way than the field in which it is looked for.
func (f *filters) compare(coll ast.Expr, cond condition, stored, field string) {
	value := f.storage(f.typeOf(cond.value))
	mixed := isNamed(f.typeOf(coll), library+"/mixedrep", "Collection")
	switch {
	case value == "" || value == stored:
	case value == asText:
		if !strings.HasPrefix(f.constant(cond.value), "$") {
			f.textAt(cond.value, fmt.Sprintf("text equals no UUID, which the field %s is: use the UUID", field))
		}
	case stored == asText:
		if !f.isSet("EncodeAsString()") {
			f.report(cond.value, "representation", fmt.Sprintf("a UUID equals no text, as which the field %s is stored: use its text, or uuidrep.StringUUID", field))
		}
	case mixed:
	case value == asClient && !f.clientsMayHave(stored):
		f.report(cond.value, "representation", fmt.Sprintf("this UUID is in the representation of the client, and the field %s is %s: "+
			"it finds nothing; use uuidrep.%s", field, stored, representationTypes[stored]))
	case stored == asClient && !f.clientsMayHave(value):
		f.report(cond.value, "representation", fmt.Sprintf("this UUID is %s, and the field %s has the representation of the client: "+
			"it finds nothing", value, field))
	case value != asClient && stored != asClient:
		f.report(cond.value, "representation", fmt.Sprintf("this UUID is %s, and the field %s is %s: it finds nothing", value, field, stored))
	}
}

var representationTypes = map[string]string{
	"standard": "StandardUUID", "csharpLegacy": "CSharpLegacyUUID", "javaLegacy": "JavaLegacyUUID", "pythonLegacy": "PythonLegacyUUID",
}

// clientsMayHave reports whether a client, a database or a collection of the module may have a representation. One of
// which the module says nothing may be standard.
func (c *checker) clientsMayHave(representation string) bool {
	all := c.module().representations()
	return all[strings.ToLower(representation)] || representation == "standard" && len(all) == 0
}

// storesText reports whether UUIDs are stored as text, or some are.
func (c *checker) storesText() bool {
	return c.isSet("EncodeAsString()") || c.isSet("AlsoDecodeString()")
}

// findTexts reports the text of a UUID as the value of a key that the structs of this package declare as a UUID.
func (f *filters) findTexts() {
	keys := map[string]bool{} // true for those of UUIDs alone
	f.visit((*ast.StructType)(nil), func(n ast.Node, _ []ast.Node) {
		for _, field := range n.(*ast.StructType).Fields.List {
			key, _, _ := strings.Cut(reflect.StructTag(tagOf(field)).Get("bson"), ",")
			if t := f.TypesInfo.TypeOf(field.Type); key != "" && t != nil {
				t, _ = elementOf(t, true)
				other, known := keys[key]
				keys[key] = f.isUUIDType(t) && (other || !known)
			}
		}
	})
	f.visit((*ast.CompositeLit)(nil), func(n ast.Node, _ []ast.Node) {
		lit := n.(*ast.CompositeLit)
		t := f.TypesInfo.TypeOf(lit)
		switch {
		case t == nil:
		case isBSON(t, "M"), f.literals[lit]:
			for _, elt := range lit.Elts {
				if kv, ok := elt.(*ast.KeyValueExpr); ok && keys[f.constant(kv.Key)] {
					f.texts(kv.Value, 4)
				}
			}
		case isBSON(t, "E") && len(lit.Elts) == 2:
			key, value := lit.Elts[0], lit.Elts[1]
			if kv, ok := key.(*ast.KeyValueExpr); ok {
				key = kv.Value
			}
			if kv, ok := value.(*ast.KeyValueExpr); ok {
				value = kv.Value
			}
			if keys[f.constant(key)] {
				f.texts(value, 4)
			}
		}
	})
	f.visit((*ast.AssignStmt)(nil), func(n ast.Node, _ []ast.Node) {
		assign := n.(*ast.AssignStmt)
		for i := 0; i < len(assign.Lhs) && len(assign.Lhs) == len(assign.Rhs); i++ {
			if index, ok := ast.Unparen(assign.Lhs[i]).(*ast.IndexExpr); ok && isBSON(f.typeOf(index.X), "M") && keys[f.constant(index.Index)] {
				f.texts(assign.Rhs[i], 4)
			}
		}
	})
	f.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		callee, ok := typeutil.Callee(f.TypesInfo, call).(*types.Func)
		if !ok || callee.Pkg() == nil || f.reach == nil {
			return
		}
		fact := f.reach.fact(callee.Origin())
		for i := 0; fact != nil && i < len(fact.Keyed); i++ { // a function that builds a stage of a pipeline
			key, value := fact.Keyed[i][0], fact.Keyed[i][1]
			if max(key, value) < len(call.Args) && keys[f.constant(call.Args[key])] {
				f.texts(call.Args[value], 4)
			}
		}
	})
}

// texts reports the texts of UUIDs in the value of a key: in a list, and in operators such as $in, too.
func (f *filters) texts(e ast.Expr, depth int) {
	e = ast.Unparen(e)
	if f.judged[e] || depth == 0 {
		return
	}
	if f.textOf(e) != nil {
		f.textAt(e, "the text of a UUID equals no UUID that is stored under this key")
		return
	}
	for _, op := range f.spelledOut(e) {
		if strings.HasPrefix(op.path, "$") {
			f.texts(op.value, depth-1)
		}
	}
	if lit, ok := e.(*ast.CompositeLit); ok && !isBSON(f.typeOf(e), "D", "M", "E") {
		if _, ok := f.typeOf(e).Underlying().(*types.Slice); ok {
			for _, elt := range lit.Elts {
				f.texts(elt, depth-1)
			}
		}
	}
}

// textAt reports text in the place of a UUID, once.
func (f *filters) textAt(e ast.Expr, message string) {
	e = ast.Unparen(e)
	if f.storesText() || f.refused[e.Pos()] {
		return
	}
	f.refused[e.Pos()] = true
	var fix *analysis.SuggestedFix
	if call, ok := e.(*ast.CallExpr); ok {
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if u := f.textOf(e); ok && u == sel.X && !f.isUnregistered(f.typeOf(u)) && !f.isIn(e, "string") {
			fix = &analysis.SuggestedFix{Message: "Use the UUID", TextEdits: []analysis.TextEdit{{Pos: u.End(), End: e.End()}}}
		}
	}
	f.reportFix(e, "octets", message, fix)
}

// isIn reports whether an expression is an element of a literal whose elements are of a type.
func (c *checker) isIn(e ast.Expr, element string) bool {
	cur, ok := c.inspect.Root().FindNode(e)
	if !ok {
		return false
	}
	lit, ok := cur.Parent().Node().(*ast.CompositeLit)
	if !ok {
		return false
	}
	slice, ok := c.typeOf(lit).Underlying().(*types.Slice)
	return ok && slice.Elem().String() == element
}

// textOf returns u of u.String(), fmt.Sprint(u) and fmt.Sprintf("%s", u) of a UUID u, or of a variable that is given one
// of these and nothing else, or nil.
func (c *checker) textOf(e ast.Expr) ast.Expr {
	if from := c.once(c.variable(e)); from != nil {
		e = from
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil
	}
	if n := len(call.Args); n > 0 {
		if u := call.Args[n-1]; c.isUUIDText(u) && (n == 1 && c.calls(call, "fmt", "Sprint") ||
			n == 2 && c.calls(call, "fmt", "Sprintf") && slices.Contains([]string{"%s", "%v"}, c.constant(call.Args[0]))) {
			return u
		}
		return nil
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "String" || !c.isUUIDText(sel.X) {
		return nil
	}
	return sel.X
}

// isUUIDText reports whether the text of an expression is that of a UUID.
func (c *checker) isUUIDText(e ast.Expr) bool {
	return c.isUUIDExpr(e) || isNamed(c.typeOf(e), library+"/uuidrep", "StandardUUID", "CSharpLegacyUUID", "JavaLegacyUUID", "PythonLegacyUUID", "StringUUID")
}

package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

// reachFact says what of a function or a generic type becomes a document or a part of one: the parameters
// of an interface type, and the type parameters, by their index.
type reachFact struct{ Params, TypeParams []int }

func (*reachFact) AFact() {}
func (f *reachFact) String() string {
	return fmt.Sprintf("documents: parameters %v, type parameters %v", f.Params, f.TypeParams)
}

// takesDocuments reports whether the arguments of type any of a function are documents or parts of them.
func takesDocuments(f *types.Func) bool {
	switch f.Pkg().Path() {
	case driver + "/mongo", library + "/bsoncodec", library + "/mixedrep", autoid:
		return true
	}
	return false
}

// A document is a type that reaches the driver, and where.
type document struct {
	at ast.Node
	t  types.Type
}

// A reach finds the documents of a package.
type reach struct {
	*checker
	facts     map[types.Object]*reachFact
	owners    map[*types.TypeParam]types.Object // the function or the type that declares it
	documents []document
	active    map[ast.Expr]bool // what value looks at
	changed   bool
}

// findDocuments notes the types that reach the methods of the driver: as arguments, through functions that
// pass their parameters on, and as type arguments.
func (c *checker) findDocuments() {
	r := &reach{checker: c, facts: map[types.Object]*reachFact{}, owners: map[*types.TypeParam]types.Object{}, active: map[ast.Expr]bool{}}
	r.findOwners()
	for r.changed = true; r.changed; {
		r.changed, r.documents = false, nil
		for f, decl := range c.decls {
			ast.Inspect(decl.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					r.call(f, call)
				}
				return true
			})
		}
		for id, instance := range c.TypesInfo.Instances {
			r.instance(id, instance)
		}
	}
	c.visit((*ast.ValueSpec)(nil), func(n ast.Node, stack []ast.Node) {
		if len(stack) > 2 { // not of the package
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				r.call(nil, call)
			}
			return true
		})
	})
	for obj, fact := range r.facts {
		if obj.Pkg() == c.Pkg && fact != nil {
			c.ExportObjectFact(obj, fact)
		}
	}
	slices.SortStableFunc(r.documents, func(a, b document) int { return int(a.at.Pos() - b.at.Pos()) })
	c.documents = r.documents
	for _, doc := range c.documents {
		holds(doc.t, func(t types.Type) bool {
			if named, ok := t.(*types.Named); ok && structOf(t) != nil && !isWithin(named.Obj().Pkg(), driver) {
				c.stored[typeName(t)] = true
			}
			return false
		})
	}
}

func (r *reach) findOwners() {
	own := func(list *types.TypeParamList, owner types.Object) {
		for i := range list.Len() {
			r.owners[list.At(i)] = owner
		}
	}
	for f := range r.decls {
		own(f.Signature().TypeParams(), f)
		if named := receiver(f); named != nil {
			own(f.Signature().RecvTypeParams(), named)
		}
	}
	for _, name := range r.Pkg.Scope().Names() {
		if obj, ok := r.Pkg.Scope().Lookup(name).(*types.TypeName); ok {
			if named, ok := obj.Type().(*types.Named); ok {
				own(named.TypeParams(), obj)
			}
		}
	}
}

// fact returns what is known of a function or a generic type, or nil.
func (r *reach) fact(obj types.Object) *reachFact {
	if f, ok := r.facts[obj]; ok || obj.Pkg() == r.Pkg {
		return f
	}
	f := new(reachFact)
	if !r.ImportObjectFact(obj, f) {
		f = nil
	}
	r.facts[obj] = f
	return f
}

// call follows the arguments of a call in the body of f, which is nil outside of functions.
func (r *reach) call(f *types.Func, call *ast.CallExpr) {
	callee, ok := typeutil.Callee(r.TypesInfo, call).(*types.Func)
	if !ok || callee.Pkg() == nil {
		return
	}
	callee = callee.Origin()
	params := callee.Signature().Params()
	known := r.fact(callee)
	for i, arg := range call.Args {
		p := min(i, params.Len()-1)
		if p < 0 {
			return
		}
		t := params.At(p).Type()
		if slice, ok := t.(*types.Slice); ok { // of []any and of ...any
			t = slice.Elem()
		}
		if known != nil && slices.Contains(known.Params, p) || takesDocuments(callee) && isAny(t) {
			r.value(f, arg)
		}
	}
}

// value notes a value that is a document or a part of one, in the body of f.
func (r *reach) value(f *types.Func, e ast.Expr) {
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok {
		e = ast.Unparen(u.X)
	}
	if r.active[e] { // a variable that is given a document with itself
		return
	}
	r.active[e] = true
	defer delete(r.active, e)
	t := r.typeOf(e)
	if lit, ok := e.(*ast.CompositeLit); ok && !isDocument(t) {
		r.literals[lit] = holdsAny(t)
		for _, elt := range lit.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			if _, ok := r.typeOf(elt).Underlying().(*types.Basic); !ok {
				r.value(f, elt)
			}
		}
	}
	if v := r.variable(e); v != nil {
		for i := 0; f != nil && isOpen(t) && i < f.Signature().Params().Len(); i++ {
			if f.Signature().Params().At(i) == v {
				r.mark(f, i, false)
			}
		}
		if from := r.once(v); from != nil && r.variable(from) == nil && (holdsAny(t) || isOpen(t) && !isOpen(r.typeOf(from))) {
			r.value(f, from)
		}
	}
	r.document(e, t)
}

// holdsAny reports whether t is a map or a slice of any.
func holdsAny(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Map:
		return isAny(t.Elem())
	case *types.Slice:
		return isAny(t.Elem())
	}
	return false
}

// isOpen reports whether the values of t, an interface type or a slice of one, can be of any type.
func isOpen(t types.Type) bool {
	if slice, ok := t.Underlying().(*types.Slice); ok {
		t = slice.Elem()
	}
	_, parameter := types.Unalias(t).(*types.TypeParam)
	return types.IsInterface(t) && !parameter
}

// instance notes the type arguments of a generic function or type.
func (r *reach) instance(id *ast.Ident, instance types.Instance) {
	obj := r.TypesInfo.Uses[id]
	switch o := obj.(type) {
	case *types.Func:
		obj = o.Origin()
	case *types.TypeName:
		if named, ok := types.Unalias(instance.Type).(*types.Named); ok {
			obj = named.Origin().Obj()
		}
	}
	if obj == nil || obj.Pkg() == nil {
		return
	}
	fact := r.fact(obj)
	for i := range instance.TypeArgs.Len() {
		if obj.Pkg().Path() == library+"/cursors" || fact != nil && slices.Contains(fact.TypeParams, i) {
			r.document(id, instance.TypeArgs.At(i))
		}
	}
}

// document notes a type that reaches the driver. If it is made of a type parameter, so does its argument.
func (r *reach) document(at ast.Node, t types.Type) {
	parameter := false
	var visit func(t types.Type)
	visit = func(t types.Type) {
		switch t := types.Unalias(t).(type) {
		case *types.TypeParam:
			parameter = true
			if owner := r.owners[t]; owner != nil {
				r.mark(owner, t.Index(), true)
			}
		case *types.Pointer:
			visit(t.Elem())
		case *types.Slice:
			visit(t.Elem())
		case *types.Array:
			visit(t.Elem())
		case *types.Map:
			visit(t.Elem())
		case *types.Named:
			for i := range t.TypeArgs().Len() {
				visit(t.TypeArgs().At(i))
			}
		}
	}
	visit(t)
	if !parameter {
		r.documents = append(r.documents, document{at, t})
	}
}

func (r *reach) mark(obj types.Object, i int, typeParam bool) {
	f := r.facts[obj]
	if f == nil {
		f = new(reachFact)
		r.facts[obj] = f
	}
	list := &f.Params
	if typeParam {
		list = &f.TypeParams
	}
	if !slices.Contains(*list, i) {
		*list = append(*list, i)
		slices.Sort(*list)
		r.changed = true
	}
}

// findReached reports the types in documents that a registry refuses, and that findUnregistered does not
// see where they are declared: in structs without bson tags, and as type arguments.
func (c *checker) findReached() {
	c.findFields()
	reported := map[any]bool{} // a field, or a position
	for _, doc := range c.documents {
		seen := map[types.Type]bool{}
		var visit func(t types.Type, at ast.Node, field *types.Var)
		visit = func(t types.Type, at ast.Node, field *types.Var) {
			t = types.Unalias(t)
			if seen[t] {
				return
			}
			seen[t] = true
			if c.isUnregistered(t) || c.isWrapper(t) && field != nil {
				var key any = at.Pos()
				where := ""
				if field != nil {
					key, where = field.Origin(), ", in the field "+field.Name()
				}
				if !reported[key] {
					reported[key] = true
					c.unregisteredAt(at, t, where)
				}
				return
			}
			if named, ok := t.(*types.Named); ok && (marshalsItself(t) || isWithin(named.Obj().Pkg(), driver)) {
				return
			}
			switch u := t.Underlying().(type) {
			case *types.Pointer:
				visit(u.Elem(), at, field)
			case *types.Slice:
				visit(u.Elem(), at, field)
			case *types.Array:
				visit(u.Elem(), at, field)
			case *types.Map:
				visit(u.Elem(), at, field)
			case *types.Struct:
				for i := range u.NumFields() {
					f, at := u.Field(i), at
					if !f.Exported() || reflect.StructTag(u.Tag(i)).Get("bson") == "-" {
						continue
					}
					if isDocument(t) && types.Identical(f.Type(), f.Origin().Type()) {
						e := elementOf(f.Type())
						if c.isUnregistered(e) || c.isWrapper(e) {
							continue // findUnregistered reports it
						}
					}
					if declared := c.fields[f]; declared != nil {
						at = declared
					}
					visit(f.Type(), at, f)
				}
			}
		}
		visit(doc.t, doc.at, nil)
	}
}

// findFields finds the declarations of the fields of the structs in the package.
func (c *checker) findFields() {
	c.fields = map[types.Object]ast.Node{}
	c.visit((*ast.StructType)(nil), func(n ast.Node, _ []ast.Node) {
		st, ok := c.typeOf(n.(*ast.StructType)).(*types.Struct)
		i := 0
		for _, field := range n.(*ast.StructType).Fields.List {
			for range max(1, len(field.Names)) {
				if ok && i < st.NumFields() {
					c.fields[st.Field(i)] = field.Type
				}
				i++
			}
		}
	})
}

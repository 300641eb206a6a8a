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
// of an interface type, and the type parameters, by their index. Those of Default are encoded or decoded without the
// registry of a client. The bytes of those of Octets get into documents without their type.
type reachFact struct {
	Params, TypeParams               []int
	DefaultParams, DefaultTypeParams []int
	Octets                           []int
	Keyed                            [][2]int // parameters that are the key and the value of an element
}

func (*reachFact) AFact() {}
func (f *reachFact) String() string {
	text := "of documents"
	if f.Params != nil || f.TypeParams != nil {
		text = fmt.Sprintf("documents: parameters %v, type parameters %v", f.Params, f.TypeParams)
	}
	if f.DefaultParams != nil || f.DefaultTypeParams != nil {
		text += fmt.Sprintf(", without a registry: parameters %v, type parameters %v", f.DefaultParams, f.DefaultTypeParams)
	}
	if f.Octets != nil {
		text += fmt.Sprintf(", bytes of type parameters %v", f.Octets)
	}
	return text
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
	at          ast.Node
	t           types.Type
	addressable bool // or it is not known whether it is
}

// A reach finds the documents of a package.
type reach struct {
	*checker
	facts     map[types.Object]*reachFact
	owners    map[*types.TypeParam]types.Object // the function or the type that declares it
	documents []document
	bypasses  map[ast.Node]string // what is encoded or decoded without the registry of a client, and by what
	octets    map[ast.Node]bool   // the bytes of a UUID that a function puts into a document
	active    map[ast.Expr]bool   // what value looks at
	changed   bool
}

// findDocuments notes the types that reach the methods of the driver: as arguments, through functions that
// pass their parameters on, and as type arguments.
func (c *checker) findDocuments() {
	r := &reach{checker: c, facts: map[types.Object]*reachFact{}, owners: map[*types.TypeParam]types.Object{}, active: map[ast.Expr]bool{}}
	r.findOwners()
	for r.changed = true; r.changed; {
		r.changed, r.documents, r.bypasses, r.octets = false, nil, map[ast.Node]string{}, map[ast.Node]bool{}
		for f, decl := range c.decls {
			ast.Inspect(decl.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					r.call(f, n)
				case *ast.CompositeLit:
					r.literal(f, n)
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
	c.reach = r
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
			r.value(f, arg, false)
			if r.uuidOf(arg) != nil {
				r.octets[arg] = true
			}
		}
		if known != nil && slices.Contains(known.DefaultParams, p) {
			r.byDefault(f, arg, callee.Name())
		}
	}
	if arg := byDefaultRegistry(callee, call); arg != nil {
		r.byDefault(f, arg, "")
	}
}

// byDefaultRegistry returns the argument of a call that the driver's own registry encodes or decodes, or nil.
func byDefaultRegistry(callee *types.Func, call *ast.CallExpr) ast.Expr {
	i, ok := 0, false
	switch recv := callee.Signature().Recv(); {
	case callee.Pkg().Path() != driver+"/bson":
	case recv == nil:
		i, ok = withoutRegistry[callee.Name()]
	default:
		ok = callee.Name() == "Unmarshal" && isBSON(recv.Type(), "RawValue")
	}
	if !ok || i >= len(call.Args) {
		return nil
	}
	return call.Args[i]
}

// byDefault notes a value in the body of f that is encoded or decoded without the registry of a client, by a function
// with a name, or by one of the driver.
func (r *reach) byDefault(f *types.Func, e ast.Expr, by string) {
	if by != "" && r.holdsUUID(e) {
		r.bypasses[e] = by
	}
	if f == nil || isWithin(r.Pkg, library) || r.choosesRegistry(f) {
		return
	}
	if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok {
		e = u.X
	}
	if p := r.parameter(f, e); p >= 0 && isOpen(r.typeOf(e)) {
		r.mark(f, p, func(fact *reachFact) *[]int { return &fact.DefaultParams })
	}
	r.typeParameters(r.typeOf(e), func(fact *reachFact) *[]int { return &fact.DefaultTypeParams })
}

// choosesRegistry reports whether a function encodes with a registry, too.
func (r *reach) choosesRegistry(f *types.Func) bool {
	found := false
	ast.Inspect(r.decls[f], func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			obj := r.TypesInfo.Uses[id]
			found = found || obj != nil && obj.Pkg() != nil && (obj.Pkg().Path() == library+"/bsoncodec" || obj.Name() == "SetRegistry")
		}
		return !found
	})
	return found
}

// literal notes what a literal of a bson.D, bson.M or bson.A in the body of f takes from its parameters.
func (r *reach) literal(f *types.Func, lit *ast.CompositeLit) {
	if !isBSON(r.typeOf(lit), "E", "M", "A") {
		return
	}
	var key ast.Expr
	for i, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			if elt = kv.Value; isBSON(r.typeOf(lit), "M") {
				key = kv.Key
			}
		}
		if isBSON(r.typeOf(lit), "E") && i == 0 {
			key = elt
			continue
		}
		if p := r.parameter(f, elt); p >= 0 && isOpen(r.typeOf(elt)) {
			r.mark(f, p, params)
			keyed := [2]int{r.parameter(f, key), p}
			if fact := r.facts[f]; keyed[0] >= 0 && !slices.Contains(fact.Keyed, keyed) {
				fact.Keyed = append(fact.Keyed, keyed)
			}
		}
		r.typeParameters(r.typeOf(elt), typeParams)
		if slice, ok := ast.Unparen(elt).(*ast.SliceExpr); ok && slice.Low == nil && slice.High == nil {
			r.typeParameters(r.typeOf(slice.X), func(fact *reachFact) *[]int { return &fact.Octets })
		}
	}
}

// parameter returns the index of the parameter of f that an expression is, or -1.
func (r *reach) parameter(f *types.Func, e ast.Expr) int {
	v := r.variable(e)
	for i := 0; v != nil && i < f.Signature().Params().Len(); i++ {
		if f.Signature().Params().At(i) == v {
			return i
		}
	}
	return -1
}

func params(f *reachFact) *[]int     { return &f.Params }
func typeParams(f *reachFact) *[]int { return &f.TypeParams }

// value notes a value that is a document or a part of one, in the body of f. It says whether the value is addressable.
func (r *reach) value(f *types.Func, e ast.Expr, addressable bool) {
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok {
		e, addressable = ast.Unparen(u.X), true
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
			_, basic := r.typeOf(elt).Underlying().(*types.Basic)
			if _, isLiteral := elt.(*ast.CompositeLit); !basic && (holdsAny(t) || isLiteral || structOf(t) != nil) {
				r.value(f, elt, !holdsAny(t)) // what is not any is looked at as a part of t
			}
		}
	}
	if v := r.variable(e); v != nil {
		for i := 0; f != nil && isOpen(t) && i < f.Signature().Params().Len(); i++ {
			if f.Signature().Params().At(i) == v {
				r.mark(f, i, params)
			}
		}
		if from := r.once(v); from != nil && r.variable(from) == nil && (holdsAny(t) || isOpen(t) && !isOpen(r.typeOf(from))) {
			r.value(f, from, addressable)
		}
	}
	r.document(e, t, addressable)
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
		t := instance.TypeArgs.At(i)
		if obj.Pkg().Path() == library+"/cursors" || fact != nil && slices.Contains(fact.TypeParams, i) {
			r.document(id, t, true)
		}
		if fact != nil && slices.Contains(fact.DefaultTypeParams, i) {
			r.typeParameters(t, func(fact *reachFact) *[]int { return &fact.DefaultTypeParams })
			if holds(t, isUUID) {
				r.bypasses[id] = obj.Name()
			}
		}
		if fact != nil && slices.Contains(fact.Octets, i) {
			r.typeParameters(t, func(fact *reachFact) *[]int { return &fact.Octets })
			if r.isUUIDType(t) {
				r.octets[id] = true
			}
		}
	}
}

// document notes a type that reaches the driver. If it is made of a type parameter, so does its argument.
func (r *reach) document(at ast.Node, t types.Type, addressable bool) {
	if !r.typeParameters(t, typeParams) {
		r.documents = append(r.documents, document{at, t, addressable})
	}
}

// typeParameters marks the type parameters that a type is made of, and reports whether it is.
func (r *reach) typeParameters(t types.Type, list func(*reachFact) *[]int) bool {
	parameter := false
	var visit func(t types.Type)
	visit = func(t types.Type) {
		switch t := types.Unalias(t).(type) {
		case *types.TypeParam:
			parameter = true
			if owner := r.owners[t]; owner != nil {
				r.mark(owner, t.Index(), list)
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
	return parameter
}

func (r *reach) mark(obj types.Object, i int, list func(*reachFact) *[]int) {
	f := r.facts[obj]
	if f == nil {
		f = new(reachFact)
		r.facts[obj] = f
	}
	if l := list(f); !slices.Contains(*l, i) {
		*l = append(*l, i)
		slices.Sort(*l)
		r.changed = true
	}
}

// findReached reports the types in documents that a registry refuses, and that findUnregistered does not
// see where they are declared: in structs without bson tags, and as type arguments.
func (c *checker) findReached() {
	c.findFields()
	reported := map[any]bool{} // a field, or a position
	for _, doc := range c.documents {
		type state struct {
			t           types.Type
			addressable bool
		}
		seen := map[state]bool{}
		var visit func(t types.Type, at ast.Node, field *types.Var, addressable bool)
		visit = func(t types.Type, at ast.Node, field *types.Var, addressable bool) {
			t = types.Unalias(t)
			if seen[state{t, addressable}] {
				return
			}
			seen[state{t, addressable}] = true
			if c.isRefused(t, addressable, field != nil) {
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
				visit(u.Elem(), at, field, true)
			case *types.Slice:
				visit(u.Elem(), at, field, true)
			case *types.Array:
				visit(u.Elem(), at, field, addressable)
			case *types.Map:
				visit(u.Elem(), at, field, false)
			case *types.Struct:
				for i := range u.NumFields() {
					f, at := u.Field(i), at
					if !f.Exported() || reflect.StructTag(u.Tag(i)).Get("bson") == "-" {
						continue
					}
					if isDocument(t) && types.Identical(f.Type(), f.Origin().Type()) {
						if e, addressable := elementOf(f.Type(), true); c.isRefused(e, addressable, true) {
							continue // findUnregistered reports it
						}
					}
					if declared := c.fields[f]; declared != nil {
						at = declared
					}
					visit(f.Type(), at, f, addressable)
				}
			}
		}
		visit(doc.t, doc.at, nil, doc.addressable)
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

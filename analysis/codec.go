package analysis

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

const core = driver + "/x/bsonx/bsoncore"

// findCodecs reports hand-written codecs for UUIDs: functions that write or read the octets of a UUID, with a
// writer or a reader of the driver or as bytes, or its text with a writer or a reader of the driver. A method UnmarshalBSONValue or MarshalBSONValue is reported if
// it takes any subtype or any length, or writes subtype 0 or 3.
func (c *checker) findCodecs() {
	if isWithin(c.Pkg, library) {
		return
	}
	registered := c.codecFunctions()
	for f, decl := range c.decls {
		c.codec(f.Name(), decl, decl.Body, registered[decl])
	}
	for n := range registered {
		if lit, ok := n.(*ast.FuncLit); ok && !c.within(lit) {
			c.codec("", lit, lit.Body, true)
		}
	}
}

// within reports whether a function literal is in a function, whose body is looked at anyway.
func (c *checker) within(lit *ast.FuncLit) bool {
	for _, decl := range c.decls {
		if decl.Pos() <= lit.Pos() && lit.End() <= decl.End() {
			return true
		}
	}
	return false
}

// The methods of a codec by what registers it.
var codecMethods = map[string]string{"RegisterTypeEncoder": "EncodeValue", "RegisterTypeDecoder": "DecodeValue"}

// codecFunctions returns the functions and function literals that this package registers as an encoder or a
// decoder of a UUID type, and the methods of the types that it registers so.
func (c *checker) codecFunctions() map[ast.Node]bool {
	found := map[ast.Node]bool{}
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok || codecMethods[sel.Sel.Name] == "" || len(call.Args) != 2 {
			return
		}
		isCodec := slices.ContainsFunc(c.origins(call.Args[0]), func(e ast.Expr) bool {
			t := c.reflected(e)
			return t != nil && isUUID(t)
		})
		if !isCodec {
			return
		}
		for _, e := range c.origins(call.Args[1]) {
			if conv, ok := e.(*ast.CallExpr); ok && c.TypesInfo.Types[conv.Fun].IsType() && len(conv.Args) == 1 {
				e = ast.Unparen(conv.Args[0]) // bson.ValueDecoderFunc(f)
			}
			var f *types.Func
			switch x := e.(type) {
			case *ast.FuncLit:
				found[x] = true
			case *ast.Ident:
				f, _ = c.TypesInfo.Uses[x].(*types.Func)
			case *ast.SelectorExpr:
				f, _ = c.TypesInfo.Uses[x.Sel].(*types.Func)
			}
			if f == nil {
				obj, _, _ := types.LookupFieldOrMethod(c.typeOf(e), true, c.Pkg, codecMethods[sel.Sel.Name])
				f, _ = obj.(*types.Func)
			}
			if decl := c.decls[f]; f != nil && decl != nil {
				found[decl] = true
			}
		}
	})
	return found
}

// reflected returns T of reflect.TypeFor[T]() and of reflect.TypeOf(v), or nil.
func (c *checker) reflected(e ast.Expr) types.Type {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil
	}
	if index, ok := ast.Unparen(call.Fun).(*ast.IndexExpr); ok && c.calls(call, "reflect", "TypeFor") {
		return c.typeOf(index.Index)
	}
	if c.calls(call, "reflect", "TypeOf") && len(call.Args) == 1 {
		return c.typeOf(call.Args[0])
	}
	return nil
}

// codec looks at a function: at what it reads, and at what it writes.
func (c *checker) codec(name string, fn ast.Node, body *ast.BlockStmt, registered bool) {
	uuids := registered || c.mentionsUUID(fn)
	method := name == "UnmarshalBSONValue" || name == "MarshalBSONValue"
	reads := map[*ast.CallExpr]*read{}
	ast.Inspect(body, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok && len(assign.Rhs) == 1 {
			if call, ok := ast.Unparen(assign.Rhs[0]).(*ast.CallExpr); ok {
				if r := c.read(call, assign.Lhs); r != nil {
					reads[call] = r
				}
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := typeutil.Callee(c.TypesInfo, call).(*types.Func)
		if !ok || f.Pkg() == nil {
			return true
		}
		wire := isMethod(f, driver+"/bson", "ValueWriter", "ValueReader")
		switch {
		case f.Name() == "WriteBinary" && wire:
			if registered || c.isOctetsOf(call.Args[0]) {
				c.reportCodec(call, "writes subtype 0, which other drivers do not read as a UUID")
			}
		case f.Name() == "WriteBinaryWithSubtype" && wire:
			if registered || c.isOctetsOf(call.Args[0]) {
				c.reportCodec(call, c.written(call.Args[1]))
			}
		case f.Name() == "WriteString" && wire:
			if registered || c.textOf(call.Args[0]) != nil {
				c.reportCodec(call, "writes text, as EncodeAsString does")
			}
		case f.Name() == "ReadString" && wire:
			if registered {
				c.reportCodec(call, "reads text, as AlsoDecodeString does")
			}
		case f.Name() == "AppendBinary" && f.Pkg().Path() == core:
			if what := c.written(call.Args[1]); what != "" && c.isOctetsOf(call.Args[2]) {
				c.reportCodec(call, what)
			}
		case f.Name() == "ReadBinary" && wire:
			if uuids {
				var problems []string
				if r := reads[call]; r != nil {
					problems = c.problems(r, body)
				}
				c.reportCodec(call, problems...)
			}
		default:
			// The readers of a value in memory serve every code, so they are reported for what they lack.
			if r := reads[call]; r != nil && uuids && (registered || method) {
				if problems := c.problems(r, body); len(problems) > 0 {
					c.reportCodec(call, problems...)
				}
			}
		}
		return true
	})
	if decl, ok := fn.(*ast.FuncDecl); ok && method {
		c.methodCodec(name, decl)
	}
}

func (c *checker) reportCodec(n ast.Node, problems ...string) {
	message := "a hand-written codec for a UUID"
	for i, p := range slices.DeleteFunc(problems, func(p string) bool { return p == "" }) {
		message += map[bool]string{true: ", which ", false: " and "}[i == 0] + p
	}
	c.report(n, "codec", message+": bsoncodec checks subtype and length, and knows any, map keys and null; "+
		"see https://github.com/bsonids/bsonids/blob/main/docs/replacing-your-codec.md")
}

// written says what is wrong with the subtype that is written, or "".
func (c *checker) written(subtype ast.Expr) string {
	v := c.TypesInfo.Types[subtype].Value
	if v == nil {
		return ""
	}
	switch n, _ := constant.Int64Val(constant.ToInt(v)); n {
	case 0:
		return "writes subtype 0, which other drivers do not read as a UUID"
	case 3:
		return "writes subtype 3 in the order of pythonLegacy"
	}
	return ""
}

// isOctetsOf reports whether an expression is the octets of a UUID or of another type of kind [16]byte.
func (c *checker) isOctetsOf(e ast.Expr) bool {
	if slice, ok := ast.Unparen(e).(*ast.SliceExpr); ok && isOctetsOrPointer(c.typeOf(slice.X)) {
		return true
	}
	return c.uuidOf(e) != nil
}

// mentionsUUID reports whether a function has an expression of a UUID type, or of a variable that holds the
// reflect.Type of one.
func (c *checker) mentionsUUID(fn ast.Node) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || found {
			return !found
		}
		if t := c.TypesInfo.TypeOf(e); t != nil && isUUID(t) {
			found = true
		}
		if id, ok := e.(*ast.Ident); ok {
			if from := c.once(c.variable(id)); from != nil {
				t := c.reflected(from)
				found = found || t != nil && isUUID(t)
			}
		}
		return !found
	})
	return found
}

// A read is a call that reads a binary value. A result that is assigned to the blank identifier is nil.
type read struct{ data, subtype *types.Var }

// read returns what a call assigns, or nil if it reads no binary value.
func (c *checker) read(call *ast.CallExpr, lhs []ast.Expr) *read {
	f, ok := typeutil.Callee(c.TypesInfo, call).(*types.Func)
	if !ok || f.Pkg() == nil || len(lhs) < 2 {
		return nil
	}
	first, second := c.variable(lhs[0]), c.variable(lhs[1])
	switch {
	case f.Name() == "ReadBinary" && isMethod(f, driver+"/bson", "ValueReader"):
		return &read{first, second}
	case f.Name() == "ReadBinary" && f.Pkg().Path() == core,
		(f.Name() == "Binary" || f.Name() == "BinaryOK") &&
			(isMethod(f, driver+"/bson", "RawValue") || isMethod(f, core, "Value")):
		return &read{second, first}
	}
	return nil
}

// problems says what a function does not check of what it has read.
func (c *checker) problems(r *read, body *ast.BlockStmt) (problems []string) {
	if len(c.usesOf(r.subtype, body)) == 0 {
		problems = append(problems, "reads any subtype")
	}
	if r.data != nil && c.anyLength(c.usesOf(r.data, body)) {
		problems = append(problems, "reads any length")
	}
	return problems
}

// usesOf returns the uses of a variable in a function, each with the nodes around it, outermost first.
// Those to which a value is assigned are left out.
func (c *checker) usesOf(v *types.Var, body *ast.BlockStmt) (uses [][]ast.Node) {
	var stack []ast.Node
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		id, ok := n.(*ast.Ident)
		if !ok || v == nil || c.TypesInfo.Uses[id] != v {
			return true
		}
		if assign, ok := stack[len(stack)-2].(*ast.AssignStmt); ok && slices.Contains(assign.Lhs, ast.Expr(id)) {
			return true
		}
		uses = append(uses, slices.Clone(stack))
		return true
	})
	return uses
}

// anyLength reports whether bytes are copied to a UUID and never looked at otherwise: by copy, reflect.Copy
// or SetBytes, and by conversions, which panic if the bytes are too few.
func (c *checker) anyLength(uses [][]ast.Node) bool {
	copied := false
	for _, stack := range uses {
		i := len(stack) - 2
		for ; i > 0; i-- { // data[5:], (data)
			switch x := stack[i].(type) {
			case *ast.ParenExpr:
				continue
			case *ast.SliceExpr:
				if x.X == stack[i+1] {
					continue
				}
			}
			break
		}
		call, ok := stack[i].(*ast.CallExpr)
		if !ok {
			return false
		}
		switch f := typeutil.Callee(c.TypesInfo, call).(type) {
		case *types.Builtin:
			if f.Name() != "copy" {
				return false
			}
			copied = true
		case *types.Func:
			switch f.FullName() {
			case "reflect.ValueOf", "reflect.Copy", "(reflect.Value).SetBytes":
				copied = true
			default:
				return false
			}
		default:
			if !c.TypesInfo.Types[call.Fun].IsType() || !isOctets(c.typeOf(call)) {
				return false
			}
			copied = true
		}
	}
	return copied
}

// methodCodec looks at a method of a UUID type that reads or writes the bytes of a binary value without the
// help of the driver.
func (c *checker) methodCodec(name string, decl *ast.FuncDecl) {
	f, _ := c.TypesInfo.Defs[decl.Name].(*types.Func)
	named := receiver(f)
	if named == nil || !isOctets(named.Type()) && !c.isAroundUUID(named.Type()) {
		return
	}
	if name == "MarshalBSONValue" {
		c.visitIn(decl.Body, func(lit *ast.CompositeLit) { // []byte{16, 0, 0, 0, 3}
			if len(lit.Elts) != 5 || c.typeOf(lit).String() != "[]byte" {
				return
			}
			if v := c.TypesInfo.Types[lit.Elts[0]].Value; v == nil || v.ExactString() != "16" {
				return
			}
			if what := c.written(lit.Elts[4]); what != "" {
				c.reportCodec(lit, what)
			}
		})
		return
	}
	params := f.Signature().Params()
	if params.Len() != 2 || isOtherByte(params.At(0).Type()) { // the form of version 1
		return
	}
	// The bytes of a binary value are its length, its subtype and its octets.
	uses := c.usesOf(params.At(1), decl.Body)
	fromOctets, subtype := false, false
	for _, stack := range uses {
		switch around := stack[len(stack)-2].(type) {
		case *ast.SliceExpr:
			v := c.constantInt(around.Low)
			fromOctets = fromOctets || v == 5
			subtype = subtype || v >= 0 && v <= 4
		case *ast.IndexExpr:
			v := c.constantInt(around.Index)
			subtype = subtype || v < 0 || v == 4
		}
	}
	if !fromOctets {
		return
	}
	var problems []string
	if !subtype {
		problems = append(problems, "reads any subtype")
	}
	if c.anyLength(uses) {
		problems = append(problems, "reads any length")
	}
	if len(problems) > 0 {
		c.reportCodec(decl.Name, problems...)
	}
}

func (c *checker) visitIn(root ast.Node, f func(*ast.CompositeLit)) {
	ast.Inspect(root, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			f(lit)
		}
		return true
	})
}

// constantInt returns the value of a constant expression, or -1.
func (c *checker) constantInt(e ast.Expr) int64 {
	if e == nil {
		return 0
	}
	if v := c.TypesInfo.Types[e].Value; v != nil {
		if n, ok := constant.Int64Val(constant.ToInt(v)); ok {
			return n
		}
	}
	return -1
}

// isAroundUUID reports whether t is a struct with a field of a UUID type.
func (c *checker) isAroundUUID(t types.Type) bool {
	st := structOf(t)
	for i := 0; st != nil && i < st.NumFields(); i++ {
		if isUUID(st.Field(i).Type()) {
			return true
		}
	}
	return false
}

// isMethod reports whether f is a method of one of the types of a package.
func isMethod(f *types.Func, path string, names ...string) bool {
	recv := f.Signature().Recv()
	return recv != nil && isNamed(recv.Type(), path, names...)
}

func isOctetsOrPointer(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return isOctets(t)
}

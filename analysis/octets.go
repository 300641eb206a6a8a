package analysis

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// findOctets reports the bytes of a UUID that a document gets without its type.
func (c *checker) findOctets() {
	c.visit((*ast.CompositeLit)(nil), func(n ast.Node, stack []ast.Node) {
		lit := n.(*ast.CompositeLit)
		t := c.TypesInfo.TypeOf(lit)
		switch {
		case t == nil:
		case isBSON(t, "Binary"):
			c.binary(lit, stack)
		case isBSON(t, "E", "M", "A"), c.literals[lit]:
			for i, elt := range lit.Elts {
				value := elt
				if kv, ok := elt.(*ast.KeyValueExpr); ok {
					value = kv.Value
				} else if isBSON(t, "E") && i == 0 {
					continue
				}
				c.value(value)
			}
		default:
			c.structLiteral(lit, t)
		}
	})
	c.visit((*ast.AssignStmt)(nil), func(n ast.Node, _ []ast.Node) {
		assign := n.(*ast.AssignStmt)
		if len(assign.Lhs) != len(assign.Rhs) {
			return
		}
		for i, lhs := range assign.Lhs {
			sel, ok := ast.Unparen(lhs).(*ast.SelectorExpr)
			if index, ok := ast.Unparen(lhs).(*ast.IndexExpr); ok && isBSON(c.typeOf(index.X), "M") { // filter["customer"] = u[:]
				c.value(assign.Rhs[i])
			}
			if !ok {
				continue
			}
			s := c.TypesInfo.Selections[sel]
			if s != nil && s.Kind() == types.FieldVal && c.isStored(s.Recv()) {
				c.field(sel.Sel.Name, assign.Rhs[i])
			}
		}
	})
}

// binary looks at a literal of bson.Binary.
func (c *checker) binary(lit *ast.CompositeLit, stack []ast.Node) {
	var data ast.Expr
	subtype := int64(0)
	for i, elt := range lit.Elts {
		name := [...]string{"Subtype", "Data"}[i]
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			name, elt = kv.Key.(*ast.Ident).Name, kv.Value
		}
		switch name {
		case "Data":
			data = elt
		case "Subtype":
			v := c.TypesInfo.Types[elt].Value
			if v == nil {
				return
			}
			subtype, _ = constant.Int64Val(constant.ToInt(v))
		}
	}
	if data == nil {
		return
	}
	u := c.uuidOf(data)
	if u == nil {
		return
	}
	switch subtype {
	case 0:
		var fix *analysis.SuggestedFix
		if anyAround(c.TypesInfo, lit, stack) && c.isEncoded(u) {
			fix = c.replace(lit, u, "Encode the UUID with the registry")
		}
		c.reportFix(lit, "octets", "the bytes of a UUID in a bson.Binary of subtype 0: other drivers do not read it as a UUID; "+
			"use the UUID itself, or uuidrep.NewBinary", fix)
	case 3:
		c.report(lit, "octets", "the bytes of a UUID in a bson.Binary of subtype 3: in this order they are the representation pythonLegacy; "+
			"use uuidrep.NewBinaryWithRepresentation")
	}
}

// anyAround reports whether lit is the value of an element of a bson.D, bson.M or bson.A.
func anyAround(info *types.Info, lit ast.Expr, stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.ParenExpr, *ast.KeyValueExpr:
		case *ast.CompositeLit:
			return isBSON(info.TypeOf(n), "E", "M", "A")
		default:
			return false
		}
	}
	return false
}

// value looks at a value of type any in a document.
func (c *checker) value(e ast.Expr) {
	u := c.uuidOf(e)
	if u == nil {
		return
	}
	var fix *analysis.SuggestedFix
	if c.isEncoded(u) {
		fix = c.replace(e, u, "Encode the UUID with the registry")
	}
	c.reportFix(e, "octets", "the bytes of a UUID in a document are stored as a binary value of subtype 0: "+
		"use the UUID itself, or uuidrep.NewBinary", fix)
}

// structLiteral looks at the []byte fields of a struct that is a document.
func (c *checker) structLiteral(lit *ast.CompositeLit, t types.Type) {
	if !c.isStored(t) {
		return
	}
	st := structOf(t)
	for i, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				c.field(key.Name, kv.Value)
			}
		} else if i < st.NumFields() {
			c.field(st.Field(i).Name(), elt)
		}
	}
}

func (c *checker) field(name string, value ast.Expr) {
	if c.uuidOf(value) != nil {
		c.report(value, "octets", fmt.Sprintf("the bytes of a UUID in the field %s are stored as a binary value of subtype 0: "+
			"give the field a UUID type", name))
	}
}

// isStored reports whether t is a struct with the tag bson on a field, or one that reaches the driver.
func (c *checker) isStored(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return isDocument(t) || c.stored[typeName(t)]
}

// isDocument reports whether t is a struct with the tag bson on a field.
func isDocument(t types.Type) bool {
	st := structOf(t)
	if st == nil || isBSON(t, "Binary", "E") {
		return false
	}
	for i := range st.NumFields() {
		if bsonTagged(st.Tag(i)) {
			return true
		}
	}
	return false
}

func structOf(t types.Type) *types.Struct {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	st, _ := t.Underlying().(*types.Struct)
	return st
}

// uuidOf returns the UUID whose bytes e is, or nil: u[:], u.Bytes(), u.MarshalBinary(), or a
// variable that was assigned one of these and nothing else.
func (c *checker) uuidOf(e ast.Expr) ast.Expr { return c.uuidWithin(e, 8) }

// uuidWithin is uuidOf for at most depth conversions and variables.
func (c *checker) uuidWithin(e ast.Expr, depth int) ast.Expr {
	if depth == 0 {
		return nil
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SliceExpr:
		if e.Low == nil && e.High == nil && c.isUUIDExpr(e.X) {
			return e.X
		}
	case *ast.CallExpr:
		if t := c.TypesInfo.Types[e.Fun]; t.IsType() && len(e.Args) == 1 { // []byte(u[:])
			return c.uuidWithin(e.Args[0], depth-1)
		}
		sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
		if ok && len(e.Args) == 0 && (sel.Sel.Name == "Bytes" || sel.Sel.Name == "MarshalBinary") && c.isUUIDExpr(sel.X) {
			return sel.X
		}
	case *ast.Ident:
		if from := c.once(c.variable(e)); from != nil {
			if _, again := from.(*ast.Ident); !again {
				return c.uuidWithin(from, depth-1)
			}
		}
	}
	return nil
}

// isEncoded reports whether a registry of bsoncodec encodes the type of a UUID, as far as this
// package tells.
func (c *checker) isEncoded(u ast.Expr) bool {
	t := c.TypesInfo.TypeOf(u)
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	return !c.isUnregistered(t)
}

func (c *checker) isUUIDExpr(e ast.Expr) bool {
	t := c.TypesInfo.TypeOf(e)
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	return c.isUUIDType(t)
}

// isUUIDType reports whether t is a type for UUIDs: see isUUID, and what the module registers as one, and a type parameter
// whose type arguments are such types.
func (c *checker) isUUIDType(t types.Type) bool {
	if isUUID(t) || isNamed(t, library+"/uuidrep", "ID") {
		return true
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return c.isUUIDParameter(p)
	}
	return isOctets(t) && c.isRegisteredUUID(t)
}

// isUUIDParameter reports whether all types in the constraint of a type parameter are types for UUIDs.
func (c *checker) isUUIDParameter(p *types.TypeParam) bool {
	constraint, ok := p.Constraint().Underlying().(*types.Interface)
	if !ok || constraint.NumEmbeddeds() == 0 {
		return false
	}
	for e := range constraint.EmbeddedTypes() {
		union, ok := e.(*types.Union)
		if !ok {
			if !c.isUUIDType(e) {
				return false
			}
			continue
		}
		for term := range union.Terms() {
			if !c.isUUIDType(term.Type()) {
				return false
			}
		}
	}
	return true
}

package analysis

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// registeredFact marks a type whose declaration has the directive //bsonids:registered.
type registeredFact struct{}

func (*registeredFact) AFact()         {}
func (*registeredFact) String() string { return "registered" }

const directive = "//bsonids:registered"

// elsewhere ends the message on a type that would not be refused if it were registered.
const elsewhere = "; if that is done elsewhere, write " + directive +
	" above its declaration, or name it in the flag -registered (golangci-lint: registered)"

// exportRegistered exports a fact for each type of this package with the directive.
func (c *checker) exportRegistered() {
	for _, f := range c.Files {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range gen.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok || !hasDirective(spec.Doc) && !(hasDirective(gen.Doc) && len(gen.Specs) == 1) {
					continue
				}
				if obj := c.TypesInfo.Defs[spec.Name]; obj != nil {
					c.ExportObjectFact(obj, new(registeredFact))
				}
			}
		}
	}
}

func hasDirective(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.TrimSpace(c.Text) == directive
	})
}

// The methods of bsoncodec.RegistryBuilder and of bson.Registry that take the type which they register. What is
// registered as a UUID is true.
var registrars = map[string]bool{
	"RegisterUUIDType": true, "SetImplicitType": true, "RegisterNullUUIDType": true,
	"RegisterTypeEncoder": false, "RegisterTypeDecoder": false, "RegisterBytesType": false, "RegisterDocumentType": false,
}

// registerFunc registers its type argument, and takes a RegistryBuilder, a function of the type, and one that returns it.
const registerFunc = "RegisterUUIDFunc"

// Registered types, by their import path, name and type arguments. The value is true for those registered as a UUID.
type registered map[string]bool

func (r registered) add(name string, isUUID bool) { r[name] = r[name] || isUUID }

// findRegistered notes the types that this package registers: reflect.TypeFor[T]() or reflect.TypeOf(v) as the argument
// of a registering method. A call of UnregisteredAsUUID or UnregisteredAsBytes registers all.
func (c *checker) findRegistered() {
	add := func(t types.Type, isUUID bool) {
		if t != nil {
			c.registered.add(typeString(t), isUUID)
		}
	}
	for id, instance := range c.TypesInfo.Instances {
		if f := c.TypesInfo.Uses[id]; id.Name == registerFunc && f != nil && isWithin(f.Pkg(), library) {
			add(instance.TypeArgs.At(0), true)
		}
	}
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, _ []ast.Node) {
		call := n.(*ast.CallExpr)
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if ok && registersAll(sel.Sel.Name) {
			c.allRegistered = true
		}
		if !ok || len(call.Args) == 0 {
			return
		}
		isUUID, ok := registrars[sel.Sel.Name]
		if !ok {
			return
		}
		for _, e := range c.origins(call.Args[0]) {
			t := c.reflected(e)
			add(t, isUUID)
			if t == nil || sel.Sel.Name != "RegisterNullUUIDType" {
				continue
			}
			if st := structOf(t); st != nil {
				for f := range st.Fields() {
					add(f.Type(), true)
				}
			}
		}
	})
}

func registersAll(method string) bool {
	return method == "UnregisteredAsUUID" || method == "UnregisteredAsBytes"
}

// isKnown reports whether a type is registered: by this package or another one of the module, or by the flag or the
// directive. It also is if the module registers types that its text does not show.
func (c *checker) isKnown(t types.Type) bool {
	name := typeString(t)
	for _, name := range []string{name, typeName(t)} {
		if _, ok := c.registered[name]; ok && name != "" {
			return true
		}
	}
	if named, ok := types.Unalias(t).(*types.Named); ok && c.ImportObjectFact(named.Obj(), new(registeredFact)) {
		return true
	}
	if c.allRegistered && isOctets(t) {
		return true
	}
	m := c.module()
	m.findRegistrations()
	_, ok := m.types[name]
	return ok || m.unclear || m.all && isOctets(t)
}

// isRegisteredUUID reports whether this package, or another one of the module, registers a type as a UUID.
func (c *checker) isRegisteredUUID(t types.Type) bool {
	name := typeString(t)
	if !c.registered[name] {
		c.module().findRegistrations()
	}
	return c.registered[name] || c.module().types[name]
}

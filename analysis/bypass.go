package analysis

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// The functions of package bson that use the driver's own registry, and which argument they encode
// or decode.
var withoutRegistry = map[string]int{
	"Marshal": 0, "MarshalExtJSON": 0, "MarshalExtJSONIndent": 0, "MarshalValue": 0,
	"Unmarshal": 1, "UnmarshalExtJSON": 2, "UnmarshalValue": 2,
}

// findBypasses reports calls that encode or decode a UUID without the registry of the client.
func (c *checker) findBypasses() {
	c.visit((*ast.CallExpr)(nil), func(n ast.Node, stack []ast.Node) {
		call := n.(*ast.CallExpr)
		f, ok := typeutil.Callee(c.TypesInfo, call).(*types.Func)
		if !ok || f.Pkg() == nil {
			return
		}
		recv := f.Signature().Recv()
		switch {
		case f.Pkg().Path() == driver+"/bson" && recv == nil:
			i, ok := withoutRegistry[f.Name()]
			if ok && i < len(call.Args) && c.holdsUUID(call.Args[i]) && !(inMethod(stack) && c.allowsSubtype0()) {
				c.report(call, "registry", fmt.Sprintf("bson.%s does not use the registry of the client, "+
					"and the value holds a UUID: use bsoncodec.%s", f.Name(), replacement(f.Name())))
			}
		case recv != nil && f.Name() == "Unmarshal" && isBSON(recv.Type(), "RawValue"):
			if len(call.Args) == 1 && c.holdsUUID(call.Args[0]) {
				c.report(call, "registry", "RawValue.Unmarshal does not use the registry of the client, "+
					"and the value holds a UUID: use bsoncodec.UnmarshalValue")
			}
		case recv != nil && f.Name() == "SetMetadata" && isNamed(recv.Type(), driver+"/mongo/options", "GridFSUploadOptionsBuilder"):
			if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && len(call.Args) == 1 && c.holdsUUID(call.Args[0]) &&
				!c.setsRegistry(sel.X, stack) && c.isUploadedPastRegistry(call) {
				c.report(call, "registry", "the metadata of GridFS do not use the registry of the client, "+
					"and the value holds a UUID: use clientopt.GridFS, or call SetRegistry of the upload options")
			}
		}
	})
}

// inMethod reports whether the nodes around a call are those of a method that marshals its receiver.
func inMethod(stack []ast.Node) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool {
		decl, ok := n.(*ast.FuncDecl)
		return ok && decl.Recv != nil && strings.HasPrefix(decl.Name.Name, "MarshalBSON")
	})
}

// allowsSubtype0 reports whether the registries of the module take UUIDs that methods write as subtype 0.
func (c *checker) allowsSubtype0() bool {
	return slices.ContainsFunc([]string{"AllowSubtype0OfMethods()", "AlsoDecodeSubtype0()", "UnregisteredAsBytes()"}, c.isSet)
}

// findPassedOn reports what functions and generic types do with the UUIDs that they are given.
func (c *checker) findPassedOn() {
	if c.reach == nil {
		return
	}
	for n, by := range c.reach.bypasses {
		if c.allowsSubtype0() {
			break
		}
		c.report(n, "registry", by+" encodes or decodes with a function of package bson that does not use the registry of the client, "+
			"and the value holds a UUID: use the functions of bsoncodec there")
	}
	for n := range c.reach.octets {
		c.report(n, "octets", "the bytes of a UUID get into a document without their type, and are stored as a binary value of subtype 0: "+
			"use the UUID itself, or uuidrep.NewBinary")
	}
}

func replacement(name string) string {
	if name == "MarshalExtJSONIndent" {
		return "MarshalExtJSON"
	}
	return name
}

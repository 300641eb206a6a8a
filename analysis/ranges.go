package analysis

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// The representations that keep the ids of versions 6 and 7 in the order of time.
var inOrder = []string{"standard", "pythonlegacy"}

// ofOrder returns the version of the ids of a range that uuidgen has made for versions 6 or 7, or "".
func (c *checker) ofOrder(r ast.Expr) string {
	return same(c.origins(r), func(e ast.Expr) string {
		call, ok := e.(*ast.CallExpr)
		if !ok || !c.callsPackage(call, library+"/uuidgen") {
			return ""
		}
		f := typeutil.Callee(c.TypesInfo, call)
		if v := strings.TrimPrefix(strings.TrimPrefix(f.Name(), "HalfOpen"), "Closed"); v == "V6" || v == "V7" {
			return v[1:]
		}
		return ""
	})
}

// filterOfRange reports the filter of a range in a representation that no client of the module has, or that does not keep
// the order of the ids.
func (c *checker) filterOfRange(call *ast.CallExpr, f *types.Func) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Name() != "Filter" || len(call.Args) != 2 {
		return
	}
	version := c.ofOrder(sel.X)
	rep, ok := ast.Unparen(call.Args[1]).(*ast.SelectorExpr)
	if !ok || version == "" || !isNamed(c.typeOf(rep), library+"/uuidrep", "Representation") || c.TypesInfo.Types[rep].Value == nil {
		return
	}
	name := strings.ToLower(rep.Sel.Name)
	switch {
	case name == "unspecified":
	case !slices.Contains(inOrder, name):
		c.report(rep, "representation", "uuidrep."+rep.Sel.Name+" does not keep the order of ids of version "+version+
			", so that Filter returns ErrOrder: use version 8 of uuidgen for them")
	case !c.clientsMayHave(name) && !c.isSet("StandardUUID") && !c.isSet("uuidrep.ID") && !c.isSet("PythonLegacyUUID"):
		c.report(rep, "representation", "no client of this module stores UUIDs as uuidrep."+rep.Sel.Name+", so that the range finds nothing; "+
			"ids of version "+version+" are in the order of time in the representations standard and pythonLegacy alone")
	}
}

// findBounds reports the bounds of a range in a document, if the clients of the module store UUIDs in an order of octets
// that is not that of time.
func (c *checker) findBounds() {
	c.visit((*ast.CompositeLit)(nil), func(n ast.Node, _ []ast.Node) {
		for _, e := range c.spelledOut(n.(*ast.CompositeLit)) {
			sel, ok := ast.Unparen(e.value).(*ast.SelectorExpr)
			if !ok || !strings.HasPrefix(e.path, "$") || sel.Sel.Name != "Min" && sel.Sel.Name != "Max" ||
				!isNamed(c.typeOf(sel.X), library+"/uuidgen", "Range") {
				continue
			}
			version := c.ofOrder(sel.X)
			representations := c.module().representations()
			if version == "" || len(representations) == 0 || c.clientsMayHave("standard") || c.clientsMayHave("pythonLegacy") {
				continue
			}
			c.report(sel, "representation", "the clients of this module do not store ids of version "+version+" in the order of time, "+
				"so that the range finds others: use version 8 of uuidgen, and Filter of its ranges")
		}
	})
}

package analysis

import (
	"bytes"
	"go/ast"
	"go/format"

	"golang.org/x/tools/go/analysis"
)

// replace returns the fix that replaces the expression e with its part by, or nil if by is not a part
// of e, for example if e is a variable that was assigned by.
func (c *checker) replace(e, by ast.Expr, message string) *analysis.SuggestedFix {
	if by.Pos() < e.Pos() || by.End() > e.End() {
		return nil
	}
	var text bytes.Buffer
	if err := format.Node(&text, c.Fset, by); err != nil {
		return nil
	}
	return &analysis.SuggestedFix{
		Message:   message,
		TextEdits: []analysis.TextEdit{{Pos: e.Pos(), End: e.End(), NewText: text.Bytes()}},
	}
}

func (c *checker) reportFix(n ast.Node, category, message string, fix *analysis.SuggestedFix) {
	if fix == nil {
		c.report(n, category, message)
		return
	}
	c.report(n, category, message, *fix)
}

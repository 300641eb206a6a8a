package analysis

import (
	"bytes"
	"go/ast"
	"go/format"
	"slices"

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

// reportFix reports with a fix, unless it is nil or changes a file that a program has written.
func (c *checker) reportFix(n ast.Node, category, message string, fix *analysis.SuggestedFix) {
	if fix == nil || slices.ContainsFunc(fix.TextEdits, c.isGenerated) {
		c.report(n, category, message)
		return
	}
	c.report(n, category, message, *fix)
}

// isGenerated reports whether an edit is in a file that a program has written, and would write again.
func (c *checker) isGenerated(edit analysis.TextEdit) bool {
	return slices.ContainsFunc(c.Files, func(f *ast.File) bool {
		return f.FileStart <= edit.Pos && edit.Pos < f.FileEnd && ast.IsGenerated(f)
	})
}

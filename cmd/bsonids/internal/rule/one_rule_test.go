package rule_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Nothing but the rule decides whether a value is converted, and to which bytes: in the packages above the
// judge, its methods are called, and bytes are permuted, in rule.go alone, and documents are edited in
// this package alone.
func TestOneRule(t *testing.T) {
	below := []string{"kinds", "decide", "scan", "explain"}
	verdicts := []string{"Value", "Formed"}
	files, found := 0, 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.Contains(below, filepath.Base(filepath.Dir(path))) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		files++
		rule := path == filepath.Join("..", "rule", "rule.go")
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := s.X.(*ast.SelectorExpr)
			judges := of != nil && of.Sel.Name == "Judge" && slices.Contains(verdicts, s.Sel.Name)
			decides := s.Sel.Name == "judge" && filepath.Base(filepath.Dir(path)) == "rule"
			in, _ := s.X.(*ast.Ident)
			edits := in != nil && in.Name == "walk" && (s.Sel.Name == "Splice" || s.Sel.Name == "Edit")
			if judges || decides || edits || s.Sel.Name == "Permute" {
				found++
				if !rule && !(edits && filepath.Base(filepath.Dir(path)) == "rule") {
					t.Errorf("%s uses %s", path, s.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 || found < 8 {
		t.Errorf("%d files, with %d uses", files, found)
	}
}

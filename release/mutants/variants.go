package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A function of a package is compiled once with all its changes: each change is a function of its own beside it, and the
// function itself begins with a switch that calls one of them, which the environment names. That is several times as fast as
// a compilation for each change.

// selector is the file that reads the number of the change to run.
const selector = `package %s

import (
	"os"
	"strconv"
)

var mutantNumber, _ = strconv.Atoi(os.Getenv("MUTANT"))
`

// function is a declared function with its changes.
type function struct {
	decl                *ast.FuncDecl
	start, end          int // of the declaration, in the file
	body                int // the offset after the brace that opens the body
	firstLine, lastLine int
	// The parts of a call and of a declaration with another name.
	receiver, typeParams, params, results string
	call                                  string // with %s for the name
}

// newFunction returns how to call the function and to declare a variant of it. Parameters without a name get one.
func (f *finder) newFunction(decl *ast.FuncDecl) *function {
	fn := &function{decl: decl, start: f.offset(decl.Pos()), end: f.offset(decl.End()), body: f.offset(decl.Body.Lbrace) + 1,
		firstLine: f.fset.Position(decl.Pos()).Line, lastLine: f.fset.Position(decl.End()).Line}
	call := "%s"
	if decl.Recv != nil {
		fields, names := f.named(decl.Recv, "receiver")
		fn.receiver = "(" + fields + ") "
		call = names[0] + ".%s"
	}
	if list := decl.Type.TypeParams; list != nil {
		fn.typeParams = f.text(list)
		var names []string
		for _, field := range list.List {
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		call += "[" + strings.Join(names, ", ") + "]"
	}
	fields, names := f.named(decl.Type.Params, "param")
	fn.params = fields
	if n := len(decl.Type.Params.List); n > 0 {
		if _, variadic := decl.Type.Params.List[n-1].Type.(*ast.Ellipsis); variadic {
			names[len(names)-1] += "..."
		}
	}
	call += "(" + strings.Join(names, ", ") + ")"
	if results := decl.Type.Results; results != nil && len(results.List) > 0 {
		fn.results = " " + f.text(results)
		call = "return " + call
	} else {
		call += "; return"
	}
	fn.call = call
	return fn
}

// named returns the text of a list of parameters that all have names, and the names.
func (f *finder) named(list *ast.FieldList, prefix string) (string, []string) {
	var fields, all []string
	for _, field := range list.List {
		names := make([]string, max(len(field.Names), 1))
		for i := range names {
			names[i] = fmt.Sprintf("%s__%d", prefix, len(all)+i)
			if i < len(field.Names) && field.Names[i].Name != "_" {
				names[i] = field.Names[i].Name
			}
		}
		fields = append(fields, strings.Join(names, ", ")+" "+f.text(field.Type))
		all = append(all, names...)
	}
	return strings.Join(fields, ", "), all
}

// header returns the declaration up to and with the brace, for a function of that name.
func (fn *function) header(name string) string {
	return "func " + fn.receiver + name + fn.typeParams + "(" + fn.params + ")" + fn.results + " {"
}

// variants is a test binary that holds many changes.
type variants struct {
	dir, pkg string
	binary   string
	fails    map[string]bool // tests, even without a change
}

func (v *variants) variant(n int) string { return fmt.Sprintf("mutant%d", n) }

// build compiles the changes, which all lie in functions, and returns those that do not compile. The number of a change is its
// index and one.
func (v *variants) build(work string, mutants []mutant) (map[int]bool, error) {
	invalid := make(map[int]bool)
	for {
		overlay, lines, err := v.write(work, mutants, invalid)
		if err != nil {
			return nil, err
		}
		out, err := compile(work, overlay, v.dir, v.binary)
		if err == nil {
			return invalid, nil
		}
		found := false
		for _, match := range regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`).FindAllStringSubmatch(string(out), -1) {
			line, _ := strconv.Atoi(match[2])
			for _, at := range lines[filepath.Base(match[1])] {
				if at.first <= line && line <= at.last && !invalid[at.mutant] {
					invalid[at.mutant] = true
					found = true
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: the changes do not compile together: %w\n%s", v.dir, err, out)
		}
	}
}

// written is the position of a change in a file that was written.
type written struct{ mutant, first, last int }

// write writes the files of the package with the changes that are not invalid, and returns them for the go command.
func (v *variants) write(work string, mutants []mutant, invalid map[int]bool) (map[string]string, map[string][]written, error) {
	overlay := make(map[string]string)
	lines := make(map[string][]written)
	byFile := make(map[string][]int)
	for i, m := range mutants {
		if !invalid[i] {
			byFile[m.file] = append(byFile[m.file], i)
		}
	}
	add := func(name string, content []byte) error {
		path, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		overlay[path] = filepath.Join(work, filepath.Base(name))
		return os.WriteFile(overlay[path], content, 0o644)
	}
	for name, indexes := range byFile {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		// Equal functions lie together, because the changes are in the order of the file.
		slices.SortStableFunc(indexes, func(a, b int) int { return mutants[a].function.start - mutants[b].function.start })
		var out bytes.Buffer
		var variants []int
		at := 0
		for i := 0; i < len(indexes); {
			fn := mutants[indexes[i]].function
			out.Write(content[at:fn.start])
			out.WriteString(fn.header(fn.decl.Name.Name) + " switch mutantNumber {")
			for ; i < len(indexes) && mutants[indexes[i]].function == fn; i++ {
				fmt.Fprintf(&out, " case %d: "+fn.call+"; ", indexes[i]+1, v.variant(indexes[i]))
				variants = append(variants, indexes[i])
			}
			out.WriteString("};")
			at = fn.body
		}
		out.Write(content[at:])
		out.WriteString("\n")
		for _, i := range variants {
			m := mutants[i]
			first := bytes.Count(out.Bytes(), []byte("\n")) + 1
			out.WriteString(m.function.header(v.variant(i)))
			out.Write(content[m.function.body:m.start])
			out.WriteString(m.text)
			out.Write(content[m.end:m.function.end])
			out.WriteString("\n")
			lines[filepath.Base(name)] = append(lines[filepath.Base(name)], written{i, first, bytes.Count(out.Bytes(), []byte("\n"))})
		}
		if err := add(name, out.Bytes()); err != nil {
			return nil, nil, err
		}
	}
	return overlay, lines, add(filepath.Join(v.dir, "mutant_number.go"), fmt.Appendf(nil, selector, v.pkg))
}

package docs

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// declared are the variables that every snippet may use without declaring them.
const declared = `
var (
	ctx    context.Context
	uri    string
	client *mongo.Client
	db     *mongo.Database
	coll   *mongo.Collection
	reg    *bson.Registry
	u      uuid.UUID
	v      any
	data   []byte
)
`

// imported are the packages that a snippet may name without an import, beside those of this repository.
var imported = []string{
	"bytes", "context", "database/sql", "encoding/json", "errors", "fmt", "iter", "log", "log/slog", "net/http", "os", "reflect",
	"slices", "strings",
	"sync", "testing", "time", "github.com/google/uuid", "go.mongodb.org/mongo-driver/v2/bson", "go.mongodb.org/mongo-driver/v2/event",
	"go.mongodb.org/mongo-driver/v2/mongo", "go.mongodb.org/mongo-driver/v2/mongo/options",
}

// goList runs go list at the top of the repository and returns its lines, cut at the first space.
func goList(t *testing.T, args ...string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	found := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found[key] = value
		}
	}
	return found
}

// compiler type-checks snippets.
type compiler struct {
	paths    map[string]string // package name to import path
	fset     *token.FileSet
	importer types.Importer
}

func newCompiler(t *testing.T) *compiler {
	const byName = `{{if not (or (eq .Name "main") .ForTest)}}{{.Name}} {{.ImportPath}}{{end}}`
	c := &compiler{paths: goList(t, append([]string{"-f", byName, "./..."}, imported...)...), fset: token.NewFileSet()}
	c.paths["gofrs"] = "github.com/gofrs/uuid/v5" // the guides' name beside google/uuid
	exports := goList(t, append([]string{"-export", "-deps", "-f", `{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}`},
		slices.Collect(maps.Values(c.paths))...)...)
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	return c
}

// compile returns the errors of a snippet: a file, declarations, or statements of a function that returns an error. What
// the snippet does not use, it may leave so.
func (c *compiler) compile(b block) error {
	code := b.setup + fmt.Sprintf("//line %s:%d\n", b.page, b.line) + b.text
	complete := strings.HasPrefix(strings.TrimSpace(b.text), "package ")
	body := code
	if !complete {
		body = "package p\n" + code
		if _, err := parser.ParseFile(c.fset, "", body, parser.SkipObjectResolution); err != nil {
			body = "package p\nfunc _() error {\n" + code + "\nreturn nil\n}\n"
		}
	}
	file, err := parser.ParseFile(c.fset, "", body, 0)
	if err != nil {
		return err
	}
	files := []*ast.File{file}
	if !complete {
		used := make(map[string]bool)
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Obj == nil && c.paths[x.Name] != "" {
					used[x.Name] = true
				}
			}
			return true
		})
		header := func(names ...string) string {
			s := "package p\n"
			for _, name := range names {
				s += fmt.Sprintf("import %s %q\n", name, c.paths[name])
			}
			return s
		}
		body = header(slices.Sorted(maps.Keys(used))...) + strings.TrimPrefix(body, "package p\n")
		if file, err = parser.ParseFile(c.fset, "", body, 0); err != nil {
			return err
		}
		common, err := parser.ParseFile(c.fset, "declared", header("context", "mongo", "bson", "uuid")+declared, 0)
		if err != nil {
			return err
		}
		files = []*ast.File{file}
		if !declares(file) {
			files = append(files, common)
		}
	}
	var errs []error
	cfg := types.Config{Importer: c.importer, Error: func(err error) {
		var e types.Error
		if !errors.As(err, &e) || !e.Soft {
			errs = append(errs, err)
		}
	}}
	cfg.Check("p", c.fset, files, nil) // its error is the first of those
	return errors.Join(errs...)
}

// declares reports whether a file declares a package-level name of declared itself.
func declares(file *ast.File) bool {
	for name := range file.Scope.Objects {
		if strings.Contains(declared, "\t"+name+" ") {
			return true
		}
	}
	return false
}

func TestSnippets(t *testing.T) {
	c := newCompiler(t)
	for page, blocks := range pages(t) {
		for _, b := range blocks {
			if b.lang != "go" {
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", page, b.line), func(t *testing.T) {
				if b.not != "" {
					t.Skip(b.not)
				}
				if err := c.compile(b); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestCompile(t *testing.T) {
	c := newCompiler(t)
	for name, tt := range map[string]struct {
		setup, text string
		want        string // of the error, or empty
	}{
		"statements":        {"", "users := db.Collection(\"users\")\nreturn users.Drop(ctx)\n", ""},
		"declared again":    {"", "client, err := mongo.Connect(options.Client().ApplyURI(uri))\nif err != nil {\n\treturn err\n}\n", ""},
		"declarations":      {"", "type User struct{ ID uuid.UUID }\n\nfunc (u User) String() string { return u.ID.String() }\n", ""},
		"a type inside":     {"", "type User struct{ ID uuid.UUID }\nvar user User\n_ = coll.FindOne(ctx, bson.D{}).Decode(&user)\n", ""},
		"a file":            {"", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n", ""},
		"own package":       {"", "r, err := uuidrep.Parse(\"standard\")\n", ""},
		"setup":             {"var user struct{ Name string }", "user.Name = \"a\"\n", ""},
		"unknown name":      {"", "users.Drop(ctx)\n", "p.md:7: undefined: users"},
		"wrong type":        {"", "x := 1\nreturn x\n", "p.md:8: cannot use x"},
		"no such function":  {"", "uuidrep.Guess()\n", "undefined: uuidrep.Guess"},
		"missing import":    {"", "package main\n\nfunc main() { fmt.Println() }\n", "p.md:9: undefined: fmt"},
		"not Go":            {"", "if {\n", "p.md:7"},
		"unused import too": {"", "package main\n\nimport \"os\"\n\nfunc main() {}\n", ""},
	} {
		err := c.compile(block{page: "p.md", line: 7, lang: "go", setup: tt.setup + "\n", text: tt.text})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

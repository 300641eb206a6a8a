// Command surface compares what users rely on with what is recorded, and fails if they differ: the exported names of the
// library and of the analyzer, and the commands, flags, exit codes and JSON schemas of the command. With -record it records
// them anew, as a change that is meant does. It must run at the top of the repository.
//
// release/surface/recorded holds the export data of each package, and the text of the command.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

const (
	root     = "github.com/bsonids/bsonids"
	recorded = "release/surface/recorded"
	suffix   = ".export"
	// command is the file of the command's surface in recorded.
	command = "bsonids.txt"
)

func main() {
	record := flag.Bool("record", false, "record the surface instead of comparing it")
	flag.Parse()
	if err := run(os.Stdout, *record); err != nil {
		fmt.Fprintln(os.Stderr, "surface:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, record bool) error {
	now, err := load()
	if err != nil {
		return err
	}
	text, err := commandText()
	if err != nil {
		return err
	}
	if record {
		if err := write(recorded, now); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(recorded, command), text, 0o644)
	}
	before, err := read(recorded)
	if err != nil {
		return fmt.Errorf("%w; surface -record writes it", err)
	}
	report := apidiff.ModuleChanges(before, now)
	if err := report.Text(w); err != nil {
		return err
	}
	// The newer text comes from stdin, and the difference goes to w.
	diff := exec.Command("diff", filepath.Join(recorded, command), "-")
	diff.Stdin, diff.Stdout = bytes.NewReader(text), w
	if err := diff.Run(); err != nil || len(report.Changes) > 0 {
		return fmt.Errorf("the surface differs from %s; if that is meant, record it with surface -record", recorded)
	}
	return nil
}

// commandText returns the commands, flags and exit codes of the command, and a hash of each schema of its JSON.
func commandText() ([]byte, error) {
	text, err := exec.Command("go", "run", "./cmd/bsonids/internal/manual", "-surface").Output()
	if err != nil {
		return nil, fmt.Errorf("manual -surface: %w", err)
	}
	schemas, err := filepath.Glob("docs/schemas/*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range schemas {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "%s %x\n", filepath.ToSlash(name), sha256.Sum256(b))
	}
	return text, nil
}

// load type-checks the packages that users of the library and of the analyzer can import.
func load() (*apidiff.Module, error) {
	cfg := &packages.Config{Mode: packages.NeedName | packages.NeedTypes | packages.NeedModule}
	pkgs, err := packages.Load(cfg, root+"/...", root+"/analysis/...")
	if err != nil {
		return nil, err
	}
	m := &apidiff.Module{Path: root}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		if p.Module == nil || p.Module.Path != root && p.Module.Path != root+"/analysis" || p.Name == "main" ||
			strings.Contains(p.PkgPath+"/", "/internal/") {
			continue
		}
		m.Packages = append(m.Packages, p.Types)
	}
	return m, nil
}

// write stores the packages without positions, which would name directories of this machine.
func write(dir string, m *apidiff.Module) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, p := range m.Packages {
		var b bytes.Buffer
		if err := gcexportdata.Write(&b, nil, p); err != nil {
			return err
		}
		name := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(p.Path(), root+"/"))+suffix)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func read(dir string) (*apidiff.Module, error) {
	m := &apidiff.Module{Path: root}
	fset, imports := token.NewFileSet(), make(map[string]*types.Package)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != suffix {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		rel, err := filepath.Rel(dir, strings.TrimSuffix(name, suffix))
		if err != nil {
			return err
		}
		p, err := gcexportdata.Read(f, fset, imports, root+"/"+filepath.ToSlash(rel))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.Packages = append(m.Packages, p)
		return nil
	})
	return m, err
}

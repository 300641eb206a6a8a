// Command strangers proves that somebody who has no clone of this repository can use it once its modules are tagged:
// that go get builds every package of the library, and that go install installs the command bsonids.
//
// usage: strangers
//
// It runs at the top of the repository, and publishes the modules of the working tree in a module proxy made of files.
// All other modules come from the proxy that GOPROXY names. Nothing is left behind.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	library = "github.com/bsonids/bsonids"
	command = library + "/cmd/bsonids"
	version = "v0.0.1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "strangers:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	work, err := os.MkdirTemp("", "strangers")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	out, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		return err
	}
	proxy := strings.TrimSpace(string(out))
	dirs, err := published()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := publish(dir, work); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	for _, dir := range dirs {
		if err := tidy(dir, work, environment(work, proxy, "tidy")); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	if err := useLibrary(work, environment(work, proxy, "get")); err != nil {
		return fmt.Errorf("go get: %w", err)
	}
	if err := installCommand(work, environment(work, proxy, "install")); err != nil {
		return fmt.Errorf("go install: %w", err)
	}
	return nil
}

// environment returns that of a stranger with an empty module cache, and without a workspace. The modules come from the
// proxy below work, then from the others.
func environment(work, others, cache string) []string {
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GONOSUMDB="+library, "GONOPROXY=none",
		"GOPROXY=file://"+work+"/proxy,"+others, "GOMODCACHE="+filepath.Join(work, "cache", cache), "GOBIN="+filepath.Join(work, "bin"))
}

// published returns the directories of the modules that are tagged: those of go.work that replace no other module.
func published() ([]string, error) {
	b, err := os.ReadFile("go.work")
	if err != nil {
		return nil, err
	}
	ws, err := modfile.ParseWork("go.work", b, nil)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, use := range ws.Use {
		m, err := readMod(use.Path)
		if err != nil {
			return nil, err
		}
		if len(m.Replace) == 0 {
			dirs = append(dirs, use.Path)
		}
	}
	return dirs, nil
}

func readMod(dir string) (*modfile.File, error) {
	path := filepath.Join(dir, "go.mod")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, b, nil)
}

// tree is where the copy of the module in dir is.
func tree(dir, work string) string { return filepath.Join(work, "tree", filepath.Clean(dir)+".module") }

// publish copies the files of the module in dir, as git knows them, requires the other modules by the version as the
// release does, and puts the copy into the proxy.
func publish(dir, work string) error {
	ls := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	ls.Dir = dir
	out, err := ls.Output()
	if err != nil {
		return err
	}
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not committed yet
		} else if err != nil {
			return err
		}
		to := filepath.Join(tree(dir, work), name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return err
		}
	}
	m, err := readMod(dir)
	if err != nil {
		return err
	}
	for _, r := range m.Require {
		if r.Mod.Path == library || strings.HasPrefix(r.Mod.Path, library+"/") {
			if err := m.AddRequire(r.Mod.Path, version); err != nil {
				return err
			}
		}
	}
	mod, err := m.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree(dir, work), "go.mod"), mod, 0o644); err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := zip.CreateFromDir(&packed, module.Version{Path: m.Module.Mod.Path, Version: version}, tree(dir, work)); err != nil {
		return err
	}
	at := filepath.Join(work, "proxy", filepath.FromSlash(m.Module.Mod.Path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for name, b := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(`{"Version":"` + version + `","Time":"2026-01-01T00:00:00Z"}`),
		version + ".mod": mod, version + ".zip": packed.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(at, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tidy fails if go.mod or go.sum of the module in dir says more or less than its code, apart from the checksums of this
// repository's modules, which do not exist before the release.
func tidy(dir, work string, env []string) error {
	copied := tree(dir, work)
	before := make(map[string][]string)
	for _, name := range []string{"go.mod", "go.sum"} {
		lines, err := foreign(filepath.Join(copied, name))
		if err != nil {
			return err
		}
		before[name] = lines
	}
	if err := do(copied, env, "go", "mod", "tidy"); err != nil {
		return err
	}
	for name, was := range before {
		is, err := foreign(filepath.Join(copied, name))
		if err != nil {
			return err
		}
		if !slices.Equal(was, is) {
			return fmt.Errorf("%s is not tidy: it has %q, and should have %q", name, without(was, is), without(is, was))
		}
	}
	return nil
}

// foreign returns the lines of a file that do not name a module of this repository.
func foreign(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	return slices.DeleteFunc(strings.Split(string(b), "\n"), func(l string) bool { return strings.HasPrefix(l, library) }), err
}

func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return slices.Contains(others, l) })
}

// useLibrary builds a new module that imports every public package of the library.
func useLibrary(work string, env []string) error {
	dir := filepath.Join(work, "user")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := do(dir, env, "go", "mod", "init", "example.com/user"); err != nil {
		return err
	}
	if err := do(dir, env, "go", "get", library+"@"+version); err != nil {
		return err
	}
	list := exec.Command("go", "list", library+"/...")
	list.Dir, list.Env = dir, env
	out, err := list.Output()
	if err != nil {
		return err
	}
	program := "package main\n\nimport (\n"
	n := 0
	for pkg := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(pkg, "/internal/") {
			program += "\t_ \"" + pkg + "\"\n"
			n++
		}
	}
	program += ")\n\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
		return err
	}
	if err := do(dir, env, "go", "run", "."); err != nil {
		return err
	}
	fmt.Printf("go get %s: %d packages\n", library, n)
	return nil
}

// installCommand installs the command and runs it.
func installCommand(work string, env []string) error {
	if err := do(work, env, "go", "install", command+"@"+version); err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(work, "bin", "bsonids"), "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if got, want := string(out), "bsonids "+version+"\n"; got != want {
		return fmt.Errorf("the command says that it is %q, want %q", got, want)
	}
	fmt.Printf("go install %s: %s", command, out)
	return nil
}

// do runs a command, and returns its output with the error.
func do(dir string, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

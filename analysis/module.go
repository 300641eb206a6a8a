package analysis

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// moduleDir returns the folder of the package's module, or "". A file that cgo has made is in no module.
func (c *checker) moduleDir() string {
	for _, f := range c.Files {
		dir := filepath.Dir(c.Fset.File(f.FileStart).Name())
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				return dir
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return ""
}

// usesVersion2 reports whether the module of the package requires version 2 of the driver for itself, and
// not for what it imports.
func (c *checker) usesVersion2() bool {
	dir := c.moduleDir()
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return dir != "" && err == nil && requires(string(b), driver)
}

// isSet reports whether an option is named in the package or, since clients are often made elsewhere, in
// any file of its module.
func (c *checker) isSet(option string) bool {
	return c.names(option) || namedIn(c.moduleDir(), option)
}

var named sync.Map // folder and option: whether the option is named there

func namedIn(module, option string) bool {
	if module == "" {
		return false
	}
	key := [2]string{module, option}
	if found, ok := named.Load(key); ok {
		return found.(bool)
	}
	found := false
	_ = filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && path != module:
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if name := d.Name(); err == nil || name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") {
				return fs.SkipDir
			}
		case strings.HasSuffix(path, ".go"):
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(option)) {
				found = true
				return fs.SkipAll
			}
		}
		return nil
	})
	named.Store(key, found)
	return found
}

// requires reports whether a go.mod file has a requirement of a module without the comment // indirect.
func requires(file, module string) bool {
	for line := range strings.Lines(file) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return !slices.Contains(fields, "indirect")
		}
	}
	return false
}

// mentionedElsewhere reports whether a file of the package's folder that is not looked at now, such as a
// test or a file for another system, has the name of one of the methods.
func (c *checker) mentionedElsewhere() bool {
	seen, dirs := map[string]bool{}, map[string]bool{}
	for _, f := range c.Files {
		name := c.Fset.File(f.FileStart).Name()
		seen[name], dirs[filepath.Dir(name)] = true, true
	}
	for dir := range dirs {
		names, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, name := range names {
			if b, err := os.ReadFile(name); !seen[name] && (err != nil || bytes.Contains(b, []byte("arshalBSONValue("))) {
				return true
			}
		}
	}
	return false
}

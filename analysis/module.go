package analysis

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// isSet reports whether an option, or a call such as "EncodeAsString()", is named in the package or, since clients are
// often made elsewhere, in any file of its module.
func (c *checker) isSet(option string) bool {
	return c.names(strings.TrimRight(option, "()")) || namedIn(c.moduleDir(), option)
}

func namedIn(dir, option string) bool {
	return slices.ContainsFunc(moduleIn(dir).files, func(f moduleFile) bool { return bytes.Contains(f.text, []byte(option)) })
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

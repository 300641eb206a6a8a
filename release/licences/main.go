// Command licences checks the licences of every module that the packages of this repository and their tests are built
// from, and prints the texts for those that the command bsonids contains.
//
// usage: licences [-notices FILE]
//
// Without the flag it lists each licence with the number of its modules. It fails if a module has no licence file, one
// that is not recognized, or a licence that is not permissive.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

const (
	// ours is the path of the library, and begins those of this repository's other modules.
	ours = "github.com/bsonids/bsonids"
	// shipped is the package of the program that releases contain.
	shipped = ours + "/cmd/bsonids"
)

// allowed are the licences, by SPDX identifier, that permit distribution in source and binary form under notice alone.
// MPL-2.0 covers files, not programs, and asks for no more as long as they are unchanged.
var allowed = []string{
	"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-2-Clause-Views", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT",
	"MPL-2.0", "PostgreSQL", "Unicode-DFS-2016", "Unlicense", "Zlib",
}

type module struct {
	Path, Version, Dir string
}

func main() {
	notices := flag.String("notices", "", "write the notices of the command's modules to `FILE`")
	flag.Parse()
	if err := run(os.Stdout, *notices); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, notices string) error {
	if notices != "" {
		modules, err := list(shipped)
		if err != nil {
			return err
		}
		text, err := noticesOf(modules)
		if err != nil {
			return err
		}
		return os.WriteFile(notices, text, 0o644)
	}
	modules, err := list("-test", "work")
	if err != nil {
		return err
	}
	count := make(map[string]int)
	var errs []error
	for _, m := range modules {
		files, err := licenceFiles(m.Dir)
		if err == nil {
			var ids []string
			ids, err = identify(files)
			count[strings.Join(ids, ", ")]++
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
		}
	}
	for _, ids := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(w, "%4d %s\n", count[ids], ids)
	}
	return errors.Join(errs...)
}

// list returns the modules of the packages and of all that they import on any system that releases are for, sorted by
// path, without those of this repository.
func list(args ...string) ([]module, error) {
	found := make(map[string]module)
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, args...)...)
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *module }
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("go list: %w", err)
			}
			if p.Module != nil && p.Module.Path != ours && !strings.HasPrefix(p.Module.Path, ours+"/") {
				found[p.Module.Path] = *p.Module
			}
		}
	}
	modules := slices.SortedFunc(maps.Values(found), func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	if len(modules) == 0 {
		return nil, errors.New("go list names no modules")
	}
	return modules, nil
}

// licenceFiles returns the licence and notice files at the top of a module, by name, without those for documentation.
func licenceFiles(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if !e.Type().IsRegular() || !strings.Contains(name, "LICENSE") && !strings.Contains(name, "LICENCE") &&
			!strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "UNLICENSE") && !strings.HasPrefix(name, "NOTICE") ||
			strings.HasSuffix(name, ".DOCS") {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// identify returns the identifiers of the licences in the files, sorted. It is an error if there are none, or if one is
// not allowed.
func identify(files map[string][]byte) ([]string, error) {
	var ids []string
	for _, text := range files {
		for _, match := range licensecheck.Scan(text).Match {
			if !match.IsURL && !slices.Contains(ids, match.ID) {
				ids = append(ids, match.ID)
			}
		}
	}
	slices.Sort(ids)
	if len(ids) == 0 {
		return []string{"unknown"}, errors.New("no licence is recognized")
	}
	for _, id := range ids {
		if !slices.Contains(allowed, id) {
			return ids, fmt.Errorf("the licence %s is not one of those allowed", id)
		}
	}
	return ids, nil
}

// noticesOf returns the licence and notice files of the modules, and that of Go itself.
func noticesOf(modules []module) ([]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	modules = append([]module{{Path: "The Go standard library", Dir: strings.TrimSpace(string(root))}}, modules...)
	var b bytes.Buffer
	b.WriteString("The program bsonids contains the following software.\n")
	for _, m := range modules {
		files, err := licenceFiles(m.Dir)
		if err != nil {
			return nil, err
		}
		if _, err := identify(files); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("=", 80), strings.TrimSpace(m.Path+" "+m.Version))
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&b, "\n%s\n", bytes.TrimSpace(files[name]))
		}
	}
	return b.Bytes(), nil
}

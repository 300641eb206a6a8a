// Command proxy writes the library, as a commit has it, into a module proxy made of files, so that the go command can
// resolve a version of it that is not published.
//
// usage: proxy VERSION COMMIT DIR
//
// It runs at the top of the repository and makes DIR, for GOPROXY=file://DIR. The files and so the checksum are those that
// the go command takes from a tag of the same commit.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const library = "github.com/bsonids/bsonids"

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: proxy VERSION COMMIT DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

func run(version, commit, dir string) error {
	mod, err := exec.Command("git", "show", commit+":go.mod").Output()
	if err != nil {
		return fmt.Errorf("git show: %w", err)
	}
	when, err := exec.Command("git", "log", "-1", "--format=%cI", commit).Output()
	if err != nil {
		return fmt.Errorf("git log: %w", err)
	}
	var packed bytes.Buffer
	if err := zip.CreateFromVCS(&packed, module.Version{Path: library, Version: version}, ".", commit, ""); err != nil {
		return err
	}
	at := filepath.Join(dir, filepath.FromSlash(library), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for name, b := range map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": fmt.Appendf(nil, `{"Version":%q,"Time":%q}`, version, bytes.TrimSpace(when)),
		version + ".mod":  mod,
		version + ".zip":  packed.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(at, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

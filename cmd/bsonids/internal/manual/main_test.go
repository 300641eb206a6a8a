package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
)

// There is a page for every command that users see, under the name that man looks for.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, time.Unix(0, 0).UTC()); err != nil {
		t.Fatal(err)
	}
	pages := []string{"bsonids.1"}
	for _, c := range cli.NewCommand().Commands() {
		if c.IsAvailableCommand() {
			pages = append(pages, "bsonids-"+c.Name()+".1")
		}
	}
	if len(pages) < 7 {
		t.Errorf("pages %v", pages)
	}
	for _, name := range pages {
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Contains(page, []byte(`.TH "BSONIDS`)) || !bytes.Contains(page, []byte("Jan 1970")) {
			t.Errorf("%s: %v\n%s", name, err, page)
		}
	}
}

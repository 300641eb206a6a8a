package docs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// root is the top of the repository.
const root = "../.."

// pages returns the blocks of the README and of the guides, by page.
func pages(t *testing.T) map[string][]block {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal("no guides", err)
	}
	found := make(map[string][]block)
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		if found[page], err = parse(filepath.ToSlash(page), strings.ReplaceAll(string(text), "\r\n", "\n")); err != nil {
			t.Error(err)
		}
	}
	return found
}

func TestParse(t *testing.T) {
	got, err := parse("p.md", strings.Join([]string{
		"# Title", "", "<!-- a comment of the page -->", "<!-- go: var a int", "var b int -->", "```go", "a = b", "```",
		"- item", "  ```sh", "  ls", "    indented", "  ```", "<!-- sh: exit 3 -->", "<!-- sh: seed -->", "",
		"```sh", "```", "<!-- sh: not run: no network -->", "```sh", "curl", "```", "```", "output", "```",
	}, "\n"))
	want := []block{
		{page: "p.md", line: 7, lang: "go", setup: "var a int\nvar b int\n", text: "a = b\n"},
		{page: "p.md", line: 11, lang: "sh", text: "ls\n  indented\n"},
		{page: "p.md", line: 18, lang: "sh", setup: "seed\n", exit: 3},
		{page: "p.md", line: 21, lang: "sh", not: "no network", text: "curl\n"},
		{page: "p.md", line: 24, text: "output\n"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for name, text := range map[string]string{
		"p.md:1: the block has no end":                   "```go\na",
		"p.md:1: the comment has no end":                 "<!-- go: a",
		"p.md:3: the comment for go before this line":    "<!-- go: a -->\n\ntext",
		"the last comment for sh":                        "<!-- sh: a -->",
		"p.md:2: a comment for go stands before a block": "<!-- go: a -->\n```sh\n```",
		"p.md:2: comments for go and sh":                 "<!-- go: a -->\n<!-- sh: b -->\n```go\n```",
		"gives no reason":                                "<!-- sh: not run -->\n```sh\n```",
		"invalid syntax":                                 "<!-- sh: exit one -->\n```sh\n```",
	} {
		if _, err := parse("p.md", text); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v, want %s", text, err, name)
		}
	}
}

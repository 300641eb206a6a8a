package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	titled  = regexp.MustCompile(`\[([^\]]+)\]\(([^)#\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors returns the fragments of a page's headings as GitHub makes them.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		found[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), ""), " ", "-")] = true
	}
	return found
}

// Every relative link leads to a file, and to a heading if it names one. Links with one text lead to one page.
// The index of the guides names every guide.
func TestLinks(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	leads := make(map[string]string) // from the text of a link to the name of a page
	indexed := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range titled.FindAllStringSubmatch(string(text), -1) {
			title, page := strings.ToLower(strings.Join(strings.Fields(m[1]), " ")), filepath.Base(m[2])
			if !strings.HasSuffix(page, ".md") {
				continue
			}
			if first := leads[title]; first != "" && first != page {
				t.Errorf("%s: the link %q leads to %s, and elsewhere to %s", file, title, page, first)
			}
			leads[title] = page
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			path, fragment, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if filepath.Base(file) == "README.md" && filepath.Base(filepath.Dir(file)) == "docs" {
				indexed[filepath.Base(path)] = true
			}
			content, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
				continue
			}
			if err != nil || fragment != "" && !anchors(string(content))[fragment] {
				t.Errorf("%s: the link %s leads nowhere: %v", file, m[1], err)
			}
		}
	}
	for _, file := range files {
		if name := filepath.Base(file); filepath.Base(filepath.Dir(file)) == "docs" && name != "README.md" && !indexed[name] {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

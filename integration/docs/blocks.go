// Package docs tests the README and the guides in docs/: every Go snippet compiles, and every command runs.
//
// A fenced block with the info string go is compiled, one with sh is run. An HTML comment directly before a block, which
// readers do not see, prepares it:
//
//	<!-- go: type User struct{ Name string } -->     code before the snippet
//	<!-- go: not compiled: REASON -->
//	<!-- sh: seed app.users '{"_id": 1}' -->         commands before those of the block; seed inserts Extended JSON
//	<!-- sh: dump app DIR -->                        the same; dump writes a database to the files of mongodump
//	<!-- sh: service write standard app.c 9 id -->  the same; service is a service that PyMongo plays
//	<!-- sh: exit 1 -->                              the exit code of the block, instead of 0
//	<!-- sh: not run: REASON -->
//
// A block of output or of any other language has another info string, or none.
package docs

import (
	"fmt"
	"strconv"
	"strings"
)

// block is a fenced block of a page.
type block struct {
	page  string
	line  int    // of the first line of text
	lang  string // "go", "sh", or another info string
	text  string
	setup string // what the comments before the block say, without those for other purposes
	not   string // the reason why it is neither compiled nor run, or empty
	exit  int
}

// parse returns the blocks of a page. A comment that belongs to no block, a block without an end and a comment that
// gives no reason are errors.
func parse(page, text string) ([]block, error) {
	var blocks []block
	var pending block
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		at := fmt.Sprintf("%s:%d", page, i+1)
		switch lang, fence := strings.CutPrefix(line, "```"); {
		case fence:
			indent := lines[i][:strings.Index(lines[i], "```")]
			b := pending
			b.page, b.line, b.lang = page, i+2, lang
			if pending.lang != "" && pending.lang != lang {
				return nil, fmt.Errorf("%s: a comment for %s stands before a block of %q", at, pending.lang, lang)
			}
			for i++; ; i++ {
				if i == len(lines) {
					return nil, fmt.Errorf("%s: the block has no end", at)
				}
				if strings.TrimSpace(lines[i]) == "```" {
					break
				}
				b.text += strings.TrimPrefix(lines[i], indent) + "\n"
			}
			blocks = append(blocks, b)
			pending = block{}
		case strings.HasPrefix(line, "<!-- go:"), strings.HasPrefix(line, "<!-- sh:"):
			comment := lines[i]
			for !strings.Contains(lines[i], "-->") {
				if i++; i == len(lines) {
					return nil, fmt.Errorf("%s: the comment has no end", at)
				}
				comment += "\n" + lines[i]
			}
			comment = strings.TrimSpace(comment)
			lang := comment[len("<!-- "):][:2]
			if pending.lang != "" && pending.lang != lang {
				return nil, fmt.Errorf("%s: comments for %s and %s stand before one block", at, pending.lang, lang)
			}
			pending.lang = lang
			if err := pending.directive(strings.TrimSpace(strings.TrimSuffix(comment[len("<!-- go:"):], "-->"))); err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
		case line != "" && pending.lang != "":
			return nil, fmt.Errorf("%s: the comment for %s before this line stands before no block", at, pending.lang)
		}
	}
	if pending.lang != "" {
		return nil, fmt.Errorf("%s: the last comment for %s stands before no block", page, pending.lang)
	}
	return blocks, nil
}

// directive takes the content of one comment.
func (b *block) directive(s string) error {
	for _, word := range []string{"not compiled", "not run"} {
		if rest, found := strings.CutPrefix(s, word); found {
			b.not = strings.TrimSpace(strings.TrimPrefix(rest, ":"))
			if b.not == "" {
				return fmt.Errorf("%q gives no reason", s)
			}
			return nil
		}
	}
	if code, found := strings.CutPrefix(s, "exit "); found && b.lang == "sh" {
		exit, err := strconv.Atoi(code)
		b.exit = exit
		return err
	}
	b.setup += s + "\n"
	return nil
}

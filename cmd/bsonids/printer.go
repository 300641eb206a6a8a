package main

import (
	"bytes"
	"io"
	"strings"
	"unicode"
)

// printer writes results. Names and values from a database are data: control characters, which a terminal would obey,
// are shown as U+FFFD. It remembers the first error, as a result that was cut off is none.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	if _, p.err = p.w.Write(bytes.Map(visible, b)); p.err != nil {
		return 0, p.err
	}
	return len(b), nil
}

func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return unicode.ReplacementChar
	}
	return r
}

// oneLine is text for a message on stderr.
func oneLine(text string) string { return strings.Map(visible, strings.ReplaceAll(text, "\n", " ")) }

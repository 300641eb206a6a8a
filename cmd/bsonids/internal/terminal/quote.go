package terminal

import (
	"regexp"
	"strings"
)

// plain matches a word that needs no quoting in a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// Quote returns a word of a command, quoted for a POSIX shell if that is necessary.
func Quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

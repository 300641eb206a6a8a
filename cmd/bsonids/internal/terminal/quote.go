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

// Command returns a command line of the words, quoted for a POSIX shell. It replaces a connection string that names
// a user by the environment variable, because the string can contain a password.
func Command(words ...string) string {
	var out []string
	for _, word := range words {
		flag, value, ok := strings.Cut(word, "=")
		if flag += "="; !ok || !strings.HasPrefix(flag, "--") || Quote(flag) != flag {
			flag, value = "", word
		}
		if strings.Contains(value, "://") && strings.Contains(value, "@") {
			value = `"$MONGODB_URI"`
		} else {
			value = Quote(value)
		}
		out = append(out, flag+value)
	}
	return strings.Join(out, " ")
}

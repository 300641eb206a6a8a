// Package redact removes the secrets of connection strings from texts and errors.
package redact

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Secrets are texts that no error may show. They are safe for concurrent use while nobody changes
// them.
type Secrets []string

// ConnectionString returns the secrets of a connection string, which may be malformed: user names
// with passwords, passwords of key files and proxies, and properties of authentication mechanisms,
// each as written and decoded. If a string can be read in several ways, it returns the secrets of
// every reading.
func ConnectionString(uri string) Secrets {
	if uri == "" {
		return nil
	}
	s := Secrets{uri}
	rest := uri[len(scheme().FindString(uri)):]
	// A password or an option can have an @ by mistake, so the user information can end at any of
	// them.
	for i := range len(rest) {
		if rest[i] != '@' {
			continue
		}
		s = append(s, rest[:i])
		if _, password, ok := strings.Cut(rest[:i], ":"); ok {
			s = append(s, password)
			if decoded, err := url.PathUnescape(password); err == nil {
				s = append(s, decoded)
			}
		}
	}
	userinfo, after, ok := strings.Cut(rest, "@")
	if !ok {
		return s.appendOptions(rest)
	}
	if strings.ContainsAny(userinfo, "/?") {
		s = s.appendOptions(rest)
	}
	s = s.appendOptions(after)
	if strings.Contains(after, "@") {
		// The password ended too early. Its rest is in a host or in the value of an option.
		hosts, query, _ := strings.Cut(after, "?")
		hosts, _, _ = strings.Cut(hosts, "/")
		for _, host := range strings.Split(hosts, ",") {
			s = s.appendDecoded(host)
		}
		for _, pair := range splitOptions(query) {
			_, value, _ := strings.Cut(pair, "=")
			s = s.appendDecoded(value)
		}
	}
	return s
}

// The expressions are compiled when they are first needed. Most programs that import the package never need some of
// them, and would pay for all at their start.

// scheme matches the beginning of a connection string, complete or not.
var scheme = expression(`^(?i:[a-z+]+:/+)?`)

// secretName matches the name of an option or of a property that holds a secret, with what stands
// between the name and the secret. The name can stand anywhere, because a wrong separator makes it
// a part of another option's value.
var secretName = expression(
	`(?i)(?:passw|pwd|secret|session_?token|(authmechanismprop))[a-z_]*\s*(?:=|:|%(?:25)*3[ad])`)

// appendOptions appends the secrets of what follows the user information of a connection string.
func (s Secrets) appendOptions(rest string) Secrets {
	before, query, _ := strings.Cut(rest, "?")
	if strings.Contains(query, "?") {
		// A ? of a password was not escaped, so any value can be a part of it. The driver's errors show values decoded.
		for _, pair := range splitOptions(query) {
			_, value, _ := strings.Cut(pair, "=")
			_, behind, _ := strings.Cut(pair, "?")
			s = s.appendDecoded(value).appendDecoded(behind)
		}
	}
	for _, part := range append(splitOptions(query), before) {
		s = s.appendNamed(part)
		if decoded, err := url.QueryUnescape(part); err == nil && decoded != part {
			s = s.appendNamed(decoded)
		}
	}
	return s
}

// appendNamed appends what follows each name of a secret in part.
func (s Secrets) appendNamed(part string) Secrets {
	for _, m := range secretName().FindAllStringSubmatchIndex(part, -1) {
		secret := part[m[1]:]
		s = s.appendDecoded(secret)
		if m[2] < 0 {
			continue
		}
		// The driver takes the properties apart, and its errors show single ones.
		for _, property := range strings.Split(secret, ",") {
			name, value, _ := strings.Cut(property, ":")
			s = append(s, Property(name, value)...)
		}
	}
	return s
}

func (s Secrets) appendDecoded(secret string) Secrets {
	s = append(s, secret)
	if decoded, err := url.QueryUnescape(secret); err == nil && decoded != secret {
		s = append(s, decoded)
	}
	return s
}

// splitOptions splits a query at the separators that the driver accepts.
func splitOptions(query string) []string {
	return strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
}

// Property returns the secrets of a property of an authentication mechanism.
func Property(name, value string) Secrets {
	switch name {
	case "SERVICE_NAME", "SERVICE_REALM", "SERVICE_HOST", "CANONICALIZE_HOST_NAME",
		"ENVIRONMENT", "TOKEN_RESOURCE", "ALLOWED_HOSTS":
		return nil
	}
	// If a session token has a comma, its rest stands where a name does.
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
		return Secrets{value}
	}
	return Secrets{name, value}
}

// refusedRune is how the driver's string preparation (RFC 4013) names the character of a password
// that it refuses.
var refusedRune = expression(`rune: '\\u[0-9a-f]+'`)

func expression(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

// Text returns text with every secret in it, plain or as %q of package fmt writes it, in any case
// of ASCII letters, replaced by "[redacted]". A secret of up to three bytes is replaced only if it
// stands as a word of its own.
func (s Secrets) Text(text string) string {
	text = refusedRune().ReplaceAllLiteralString(text, "rune: '[redacted]'")
	folded := foldASCII(text)
	hide := make([]bool, len(text))
	for _, secret := range s {
		quoted := strconv.Quote(secret)
		for _, form := range []string{secret, quoted[1 : len(quoted)-1]} {
			markAll(hide, folded, foldASCII(form))
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hide[i]:
			b.WriteByte(text[i])
		case i == 0 || !hide[i-1]:
			b.WriteString("[redacted]")
		}
	}
	return b.String()
}

// markAll sets hide for the bytes of each occurrence of secret in text.
func markAll(hide []bool, text, secret string) {
	if secret == "" {
		return
	}
	for from := 0; ; from++ {
		i := strings.Index(text[from:], secret)
		if i < 0 {
			return
		}
		from += i
		end := from + len(secret)
		if len(secret) < 4 && (from > 0 && isWord(text[from-1]) || end < len(text) && isWord(text[end])) {
			continue
		}
		for j := from; j < end; j++ {
			hide[j] = true
		}
	}
}

// foldASCII returns s with its ASCII letters in lower case. It keeps the length, which
// strings.ToLower does not.
func foldASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}

// Error returns err if its text shows no secret. Otherwise it returns an error with the redacted
// text, which answers errors.Is as err does. It answers neither errors.As nor errors.Unwrap,
// because both hand out values with the secret.
func (s Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if safe := s.Text(text); safe != text {
		return &redactedError{text: safe, err: err}
	}
	return err
}

type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }

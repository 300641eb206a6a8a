package clientopt

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// secrets are texts that no error may show.
type secrets []string

// secrets returns what no error about c may show, of what the driver's errors could: parse has seen to it that they
// quote whole values, if any, and nothing of the user information.
func (c connString) secrets() secrets {
	var s secrets
	if p, err := url.PathUnescape(c.password); err == nil {
		s = append(s, c.password, p)
	}
	for _, o := range c.options {
		switch {
		case o.name == "authmechanismproperties":
			s = append(s, o.value)
			for _, prop := range strings.Split(o.value, ",") {
				name, value, _ := strings.Cut(prop, ":")
				s = append(s, propertySecrets(name, value)...)
			}
		case strings.HasSuffix(o.name, "password"):
			s = append(s, o.value)
		case c.ats > 1:
			// A password with an @ of its own ends too early, and its rest is a host, a database or an option.
			s = append(s, o.value)
		}
	}
	if c.ats > 1 {
		for _, h := range c.hosts {
			decoded, _ := url.QueryUnescape(h)
			s = append(s, h, decoded)
		}
	}
	return s
}

// authSecrets returns what no error about a client with these credentials may show.
func authSecrets(a *options.Credential) secrets {
	if a == nil {
		return nil
	}
	s := secrets{a.Password}
	for name, value := range a.AuthMechanismProperties {
		s = append(s, propertySecrets(name, value)...)
	}
	return s
}

// propertySecrets returns what no error may show of a property of an authentication mechanism.
func propertySecrets(name, value string) secrets {
	switch name {
	case "SERVICE_NAME", "SERVICE_REALM", "SERVICE_HOST", "CANONICALIZE_HOST_NAME",
		"ENVIRONMENT", "TOKEN_RESOURCE", "ALLOWED_HOSTS":
		return nil
	}
	// A session token with a comma in it leaves its rest in the place of a name.
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
		return secrets{value}
	}
	return secrets{name, value}
}

// refusedRune is how the driver's string preparation names the character of a password, or of its normal form, that it
// refuses.
var refusedRune = regexp.MustCompile(`rune: '\\u[0-9a-f]+'`)

// redact returns err where its text shows no secret, and otherwise an error with that text but for them.
func redact(err error, hidden secrets) error {
	text := err.Error()
	if safe := hidden.removeFrom(refusedRune.ReplaceAllLiteralString(text, "rune: '[redacted]'")); safe != text {
		return &redactedError{text: safe, err: err}
	}
	return err
}

// removeFrom returns text with every secret in it, plain or as fmt's %q writes it, replaced by "[redacted]". Up to three
// octets are a secret only as a word of their own: within words they are chance.
func (s secrets) removeFrom(text string) string {
	hide := make([]bool, len(text))
	for _, secret := range s {
		quoted := strconv.Quote(secret)
		for _, form := range []string{secret, quoted[1 : len(quoted)-1]} {
			if form == "" {
				continue
			}
			for from := 0; ; from++ {
				i := strings.Index(text[from:], form)
				if i < 0 {
					break
				}
				from += i
				end := from + len(form)
				if len(form) < 4 && (from > 0 && isWord(text[from-1]) || end < len(text) && isWord(text[end])) {
					continue
				}
				for j := from; j < end; j++ {
					hide[j] = true
				}
			}
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

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// redactedError is an error of the driver without the secrets in its text. It has no Unwrap and no As, which would hand
// out the text or the values that hold them.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }

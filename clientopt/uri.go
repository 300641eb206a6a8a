package clientopt

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/bsonids/bsonids/uuidrep"
)

// Representation returns the value of the option uuidRepresentation in the connection string uri, and
// [uuidrep.Unspecified] where it is absent. It reads the string alone: no file and, with mongodb+srv, no DNS record
// (the driver takes no uuidRepresentation from there).
//
// A value that is empty or unknown is an error, and so are two different ones and a string whose form the driver
// refuses. Whether there is a host and a user name, how many hosts mongodb+srv has, and the values of other options are
// not looked at. No error shows a secret of uri.
//
// The option is that of "Implicit decoding and encoding" in the MongoDB driver specification "Handling of Native UUID
// Types".
func Representation(uri string) (uuidrep.Representation, error) {
	cs, err := parse(uri)
	if err != nil {
		return uuidrep.Unspecified, fmt.Errorf("clientopt: the connection string is not valid: %w", err)
	}
	r, _, err := representation(cs.values("uuidrepresentation"))
	if err != nil {
		return uuidrep.Unspecified, fmt.Errorf("clientopt: %w", redact(err, cs.secrets()))
	}
	return r, nil
}

// representation returns what the values of the option uuidRepresentation agree on, and whether there are any.
func representation(values []string) (r uuidrep.Representation, stated bool, err error) {
	for _, v := range values {
		next, err := uuidrep.Parse(v)
		switch {
		case err != nil:
			return uuidrep.Unspecified, true, fmt.Errorf("option uuidRepresentation: %w", err)
		case stated && next != r:
			return uuidrep.Unspecified, true, fmt.Errorf("option uuidRepresentation is set twice, to %v and to %v", r, next)
		}
		r, stated = next, true
	}
	return r, stated, nil
}

// connString is a connection string taken apart as the driver takes it apart, before any option has a meaning.
type connString struct {
	ats      int    // how many @ there are
	password string // as written
	hosts    []string
	options  []option
}

type option struct {
	name  string // decoded, in lower case
	value string // decoded
}

// values returns the values of the option with that name in lower case, in their order.
func (c connString) values(name string) []string {
	var vs []string
	for _, o := range c.options {
		if o.name == name {
			vs = append(vs, o.value)
		}
	}
	return vs
}

// parse takes uri apart by the rules of the driver's own parser, the exact ones, so that both find the same options.
// It goes as far as the driver's errors can show text that may be a secret; its own errors show nothing of uri.
func parse(uri string) (connString, error) {
	rest, ok := strings.CutPrefix(uri, "mongodb+srv://")
	if !ok {
		rest, ok = strings.CutPrefix(uri, "mongodb://")
	}
	if !ok {
		return connString{}, errors.New("it must begin with mongodb:// or mongodb+srv://")
	}
	c := connString{ats: strings.Count(rest, "@")}

	// The first @ ends the user information, wherever it stands.
	if userinfo, after, ok := strings.Cut(rest, "@"); ok {
		rest = after
		var username string
		username, c.password, _ = strings.Cut(userinfo, ":")
		if err := checkUserinfo("user name", username); err != nil {
			return connString{}, err
		}
		if err := checkUserinfo("password", c.password); err != nil {
			return connString{}, err
		}
	}

	hosts := rest
	if i := strings.IndexAny(rest, "/?@"); i >= 0 {
		switch rest[i] {
		case '@':
			return connString{}, errors.New("the user name or the password has an @: write it as %40")
		case '?':
			return connString{}, errors.New("there must be a / between the hosts and the ? that begins the options")
		}
		hosts = rest[:i]
	}
	rest = strings.TrimPrefix(rest[len(hosts):], "/")
	c.hosts = strings.Split(hosts, ",")
	for i, h := range c.hosts {
		if err := checkHost(h); err != nil {
			hint := ""
			if c.ats == 0 {
				hint = "; a user name and a password end with an @, and here is none"
			}
			return connString{}, fmt.Errorf("host %d of %d %w%s", i+1, len(c.hosts), err, hint)
		}
	}

	database, query, _ := strings.Cut(rest, "?")
	if _, err := url.QueryUnescape(database); err != nil {
		return connString{}, errors.New("the percent-encoding of the database name is not valid")
	}

	for i, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return connString{}, fmt.Errorf("option %d has not the form name=value", i+1)
		}
		name, errName := url.QueryUnescape(name)
		value, errValue := url.QueryUnescape(value)
		if errName != nil || errValue != nil {
			return connString{}, fmt.Errorf("the percent-encoding of option %d is not valid", i+1)
		}
		c.options = append(c.options, option{name: strings.ToLower(name), value: value})
	}
	return c, nil
}

// checkUserinfo reports what is wrong with a user name or a password as written. A name cannot have a colon here.
func checkUserinfo(part, s string) error {
	if strings.Contains(s, ":") {
		return fmt.Errorf("the %s has a :: write it as %%3A", part)
	}
	if strings.Contains(s, "/") {
		return fmt.Errorf("the %s has a /: write it as %%2F, and an @ elsewhere as %%40: the first one ends user name and "+
			"password", part)
	}
	if _, err := url.PathUnescape(s); err != nil {
		return fmt.Errorf("the percent-encoding of the %s is not valid: a %% itself is %%25", part)
	}
	return nil
}

// checkHost reports what is wrong with a host as written, to be read after its name.
func checkHost(s string) error {
	host, err := url.QueryUnescape(s)
	if err != nil {
		return errors.New("has percent-encoding that is not valid")
	}
	if host == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(host)
	var addrErr *net.AddrError
	switch {
	case errors.As(err, &addrErr) && addrErr.Err == "missing port in address":
		return nil
	case err != nil:
		return errors.New("is not host or host:port")
	case port == "":
		return nil
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return errors.New("has a port that is not a number from 1 to 65535")
	}
	return nil
}

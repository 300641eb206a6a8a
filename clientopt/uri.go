package clientopt

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/bsonids/bsonids/internal/redact"
	"github.com/bsonids/bsonids/uuidrep"
)

// Representation returns the value of the option uuidRepresentation in the connection string uri,
// and [uuidrep.Unspecified] if it is absent. It reads neither files nor the DNS: with mongodb+srv,
// the driver takes no uuidRepresentation from there.
//
// It is an error if the value is empty or unknown, if there are two different values, if another
// option has a name close to uuidRepresentation or has it in its value, and if the driver refuses
// the form of the string. Hosts, the user name and the values of other options are not checked. No
// error shows a secret of uri.
//
// It implements "Implicit decoding and encoding" of the MongoDB driver specification "Handling of
// Native UUID Types".
func Representation(uri string) (uuidrep.Representation, error) {
	cs, err := parse(uri)
	if err != nil {
		return uuidrep.Unspecified, fmt.Errorf("clientopt: the connection string is not valid: %w", err)
	}
	r, _, err := representation(cs.representations)
	if err != nil {
		return uuidrep.Unspecified, fmt.Errorf("clientopt: %w", redact.ConnectionString(uri).Error(err))
	}
	return r, nil
}

// representation returns what the values of the option uuidRepresentation agree on, and whether
// there are any.
func representation(values []string) (r uuidrep.Representation, stated bool, err error) {
	for _, v := range values {
		next, err := uuidrep.Parse(v)
		switch {
		case err != nil:
			return r, stated, fmt.Errorf("option uuidRepresentation: %w", err)
		case stated && next != r:
			return r, stated, fmt.Errorf("option uuidRepresentation is set twice, to %v and to %v", r, next)
		}
		r, stated = next, true
	}
	return r, stated, nil
}

// connString is a connection string as the driver parses it, before any option has a meaning.
type connString struct {
	options         []option
	representations []string // the values of uuidRepresentation, in their order
}

type option struct {
	name  string // decoded, in lower case
	value string // decoded
}

// parse parses uri by the rules of the driver's own parser, so that both find the same options, as
// far as the driver's errors can show secrets. Its own errors show nothing of uri except an option
// name close to uuidRepresentation.
func parse(uri string) (connString, error) {
	rest, ok := strings.CutPrefix(uri, "mongodb+srv://")
	if !ok {
		rest, ok = strings.CutPrefix(uri, "mongodb://")
	}
	if !ok {
		return connString{}, errors.New("it must begin with mongodb:// or mongodb+srv://")
	}
	hasAt := strings.Contains(rest, "@")

	// The first @ ends the user information, wherever it is.
	if userinfo, after, ok := strings.Cut(rest, "@"); ok {
		rest = after
		username, password, _ := strings.Cut(userinfo, ":")
		if err := checkUserinfo("user name", username); err != nil {
			return connString{}, err
		}
		if err := checkUserinfo("password", password); err != nil {
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
	path, query, _ := strings.Cut(strings.TrimPrefix(rest[len(hosts):], "/"), "?")
	names := strings.Split(hosts, ",")
	for i, h := range names {
		if err := checkHost(h); err != nil {
			hint := ""
			if !hasAt {
				hint = "; a user name and a password must be followed by an @, and there is none"
			}
			return connString{}, fmt.Errorf("host %d of %d %w%s", i+1, len(names), err, hint)
		}
	}
	if _, err := url.QueryUnescape(path); err != nil {
		return connString{}, errors.New("the percent-encoding of the database name is not valid")
	}
	if holdsRepresentation(hosts) || holdsRepresentation(path) {
		return connString{}, errors.New("uuidRepresentation is not among the options: they begin after a / and a ?")
	}
	return parseOptions(query)
}

func parseOptions(query string) (connString, error) {
	var c connString
	for i, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return connString{}, fmt.Errorf("option %d does not have the form name=value", i+1)
		}
		if holdsRepresentation(value) {
			return connString{}, fmt.Errorf("the value of option %d has uuidRepresentation= in it: options are separated "+
				"by &, and = in a value is written as %%3D", i+1)
		}
		name, errName := url.QueryUnescape(name)
		value, errValue := url.QueryUnescape(value)
		if errName != nil || errValue != nil {
			return connString{}, fmt.Errorf("the percent-encoding of option %d is not valid", i+1)
		}
		o := option{name: strings.ToLower(name), value: value}
		c.options = append(c.options, o)
		if o.name == "uuidrepresentation" {
			c.representations = append(c.representations, value)
		} else if err := checkNearMiss(name); err != nil {
			return connString{}, fmt.Errorf("option %d%w", i+1, err)
		}
	}
	return c, nil
}

// checkUserinfo reports what is wrong with a user name or a password as written.
func checkUserinfo(part, s string) error {
	switch {
	case strings.Contains(s, ":"):
		return fmt.Errorf("the %s has a colon: write it as %%3A", part)
	case strings.Contains(s, "/"):
		return fmt.Errorf("the %s has a slash: write it as %%2F, and an @ elsewhere as %%40: the first one ends the user "+
			"name and the password", part)
	}
	if _, err := url.PathUnescape(s); err != nil {
		return fmt.Errorf("the percent-encoding of the %s is not valid: write %% as %%25", part)
	}
	return nil
}

// checkHost reports what is wrong with a host as written. The text continues "host 1 of 2".
func checkHost(s string) error {
	host, err := url.QueryUnescape(s)
	if err != nil {
		return errors.New("has percent-encoding that is not valid")
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

package mongotest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
)

// connString is a connection string in parts, so that it can get another database and further
// options.
type connString struct {
	scheme   string // with "://"
	userInfo string // with "@", or empty
	hosts    string // one or more, separated by commas
	options  string // without "?"
}

// parseConnString splits a connection string. The database of the string authenticates the user if
// no option names another one, so it becomes authSource when the database of a test replaces it.
// The error does not contain the string, which may have a password.
func parseConnString(s string) (connString, error) {
	var c connString
	scheme, rest, found := strings.Cut(s, "://")
	if !found || scheme != "mongodb" && scheme != "mongodb+srv" {
		return c, errors.New(`want a connection string that starts with "mongodb://" or "mongodb+srv://"`)
	}
	c.scheme = scheme + "://"
	rest, c.options, _ = strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		c.userInfo, rest = rest[:at+1], rest[at+1:]
	}
	hosts, database, _ := strings.Cut(rest, "/")
	if hosts == "" {
		return c, errors.New("want a connection string with a host")
	}
	c.hosts = hosts
	if c.userInfo != "" && !strings.Contains(strings.ToLower(c.options), "authsource=") {
		if database == "" {
			database = "admin"
		}
		c.options = join(c.options, "authSource="+database)
	}
	return c, nil
}

// direct reports whether a client uses the host of the connection string and no other, by a plain connection.
func (c connString) direct() bool {
	options := strings.ToLower(c.options)
	return c.scheme == "mongodb://" && strings.Contains(options, "directconnection=true") && !strings.Contains(options, "tls=") &&
		!strings.Contains(options, "ssl=") && strings.Contains(c.hosts, ":") && !strings.ContainsAny(c.hosts, ",/%")
}

func (c connString) with(database, opts string) string {
	s := c.scheme + c.userInfo + c.hosts + "/" + database
	if opts = join(c.options, opts); opts != "" {
		s += "?" + opts
	}
	return s
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "&" + b
}

// databaseName returns a new name that begins with the name of the test. A database name has at
// most 63 bytes, and some servers ignore case.
func databaseName(test string) string {
	name := []byte(strings.ToLower(test))
	for i, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			name[i] = '_'
		}
	}
	if len(name) > 40 {
		name = name[:40]
	}
	var suffix [6]byte
	rand.Read(suffix[:])
	return string(name) + "_" + hex.EncodeToString(suffix[:])
}

package mongotest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
)

// connString is a connection string in parts, so that a database and options can be put in without losing any of the
// ones that are there.
type connString struct {
	scheme   string // with "://"
	userInfo string // with "@", or empty
	hosts    string // one or more, separated by commas
	options  string // without "?"
}

// parseConnString takes a connection string apart. The database in its path authenticates the user where no option
// names another, so it stays as authSource when a test's own takes its place. The error never shows the string, which
// may hold a password.
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

// databaseName makes a new name that tells which test it belongs to. A name has at most 63 octets, and two that differ
// in case alone are one and the same to some servers.
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

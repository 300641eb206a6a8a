package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"golang.org/x/term"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// connectionString returns the connection string that the user gave, or as much of it as is known.
func (c *console) connectionString() string {
	if c.uri != "" || c.uriFile != "" {
		return c.uri
	}
	return os.Getenv("MONGODB_URI")
}

// connect connects to the server that the user named, until close. It asks for the password if the connection
// string names a user without one and stdin is a terminal.
func (c *console) connect(ctx context.Context, mode server.Mode) (*mongo.Client, error) {
	if err := c.readURI(); err != nil {
		return nil, failure.Usagef("--uri-file %s: %v", c.uriFile, err)
	}
	uri := c.connectionString()
	if user, ok := withoutPassword(uri); ok && terminal.Is(os.Stdin) {
		fmt.Fprintf(c.err, "Password of %s: ", terminal.Cell(user))
		password, err := term.ReadPassword(int(os.Stdin.Fd()))
		fmt.Fprintln(c.err)
		if err != nil {
			return nil, failure.Usagef("no password: %v", err)
		}
		uri = withPassword(uri, string(password))
		c.uri = uri
	}
	client, err := server.Connect(ctx, uri, mode)
	c.client = client
	return client, err
}

// session connects to the server, for work on conversions.
func (c *console) session(ctx context.Context, mode server.Mode) (*session.Session, error) {
	client, err := c.connect(ctx, mode)
	if err != nil {
		return nil, err
	}
	v, _ := build()
	s := &session.Session{Client: client, URI: c.connectionString(), Version: v, Messages: c, Recording: c.recording}
	s.Patience = patience.New(c.retryFor, func(err error, left time.Duration) {
		c.Warn("%s; trying again for up to %s", s.Explain(err).Text, left.Round(time.Second))
	})
	return s, nil
}

// readURI reads the connection string from --uri-file if it is given. The file, which may be a pipe, must have one
// line.
func (c *console) readURI() error {
	const most = 64 << 10
	if c.uriFile == "" {
		return nil
	}
	b, err := files.ReadAtMost(c.uriFile, most)
	uri := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return err
	case uri == "":
		return errors.New("the file is empty")
	case strings.ContainsAny(uri, "\r\n\x00"):
		return errors.New("the file must have a single line with the connection string")
	}
	c.uri = uri
	return nil
}

// userOnly matches a connection string that names a user without a password.
var userOnly = regexp.MustCompile(`^(mongodb(?:\+srv)?://[^:@/?]+)(@[^@]*)$`)

// otherMechanism matches the authentication mechanisms that need no password.
var otherMechanism = regexp.MustCompile(`(?i)[?&]authMechanism=(MONGODB-X509|MONGODB-AWS|MONGODB-OIDC|GSSAPI)(&|$)`)

// withoutPassword returns the user that a connection string names, and whether its password is
// missing and needed.
func withoutPassword(uri string) (user string, ok bool) {
	m := userOnly.FindStringSubmatch(uri)
	if m == nil || otherMechanism.MatchString(uri) {
		return "", false
	}
	_, user, _ = strings.Cut(m[1], "://")
	if decoded, err := url.PathUnescape(user); err == nil {
		user = decoded
	}
	return user, true
}

// withPassword adds the password to a connection string that names a user without a password.
func withPassword(uri, password string) string {
	m := userOnly.FindStringSubmatch(uri)
	return m[1] + ":" + strings.ReplaceAll(url.QueryEscape(password), "+", "%20") + m[2]
}

package servertest

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/embedded"
)

// complete returns what the shell is told to complete the last argument with.
func complete(t *testing.T, args ...string) (words []string, stderr string) {
	t.Helper()
	r := command(t, nil, append([]string{"__complete"}, args...)...).want(t, failure.ExitOK)
	for line := range strings.Lines(r.stdout) {
		if !strings.HasPrefix(line, ":") { // the directive
			words = append(words, strings.TrimSuffix(line, "\n"))
		}
	}
	return words, r.stderr
}

func TestComplete(t *testing.T) {
	s, db := started(t)
	for _, name := range []string{"orders", "other", "users", "ünïcode", "with space", "it's"} {
		insert(t, db.Collection(name), []any{bson.D{{Key: "x", Value: 1}}})
	}
	for _, c := range [][2]string{{"7f3b", "switched"}, {"10c2", "rolling back"}, {"0123", "released"}} {
		insert(t, db.Collection(record.Name), []any{bson.D{{Key: "_id", Value: c[0] + "/cutover"}, {Key: "kind", Value: "cutover"}, {Key: "state", Value: c[1]}}})
	}
	file := filepath.Join(t.TempDir(), "uri")
	put(t, file, s.URI())
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"scan", "--uri", s.URI(), "--db", s.Database(), "--collection", ""}, []string{"orders", "other", "users", "ünïcode"}},
		{[]string{"plan", "shop.d", "--uri", s.URI(), "--db", s.Database(), "--collection", "o"}, []string{"orders", "other"}},
		{[]string{"scan", "--uri-file", file, "--db", s.Database(), "--collection", "orders,u"}, []string{"orders,users"}},
		{[]string{"plan", "shop.d", "--uri", s.URI(), "--db", s.Database()[:5]}, []string{s.Database()}},
		{[]string{"plan", "shop.d", "--uri", s.URI(), "--db", s.Database(), "--collection", "u"}, []string{"users"}},
		{[]string{"scan", "--uri", s.URI(), "--db", s.Database()[:len(s.Database())-1]}, []string{s.Database()}},
		{[]string{"plan", "shop.d", "--uri", s.URI(), "--db", s.Database(), "--collection", "nothing"}, nil},
		{[]string{"plan", "shop.d", "--uri", s.URI(), "--db", "no.such", "--collection", ""}, nil},
		{[]string{"cutover", "--uri", s.URI(), "--db", s.Database(), "7"}, []string{"7f3b"}},
		{[]string{"undo", "--uri", s.URI(), "--db", s.Database(), ""}, []string{"10c2", "7f3b"}},
		{[]string{"release", "--uri", s.URI(), "--db", s.Database(), "7f3b", ""}, nil},
		{[]string{"scan", "--fail-on", "legacy,m"}, []string{"legacy,mixed"}},
		{[]string{"scan", "--output", ""}, []string{"html", "json", "table"}},
		{[]string{"show", "--log-format", ""}, []string{"json", "text"}},
	} {
		if got, _ := complete(t, tt.args...); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
		}
	}
}

// Without an answer of the server, nothing is completed, nothing is asked, and no password is shown.
func TestCompleteNothing(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, uri := range map[string]string{
		"silent":      "mongodb://user:s3cret@" + silent.Addr().String(),
		"no server":   "mongodb://user:s3cret@127.0.0.1:1",
		"no password": "mongodb://user@" + silent.Addr().String(),
		"invalid":     "mongodb://user:s3cret@@@:x",
	} {
		if got, stderr := complete(t, "scan", "--uri", uri, "--db", ""); len(got) > 0 || strings.Contains(stderr, "s3cret") || strings.Contains(stderr, "ERROR") || strings.Contains(stderr, "assword") {
			t.Errorf("%s: %q\n%s", name, got, stderr)
		}
	}
}

// The databases are found on a server that does not know authorizedDatabases, as the engines of
// DocumentDB answer: "Field 'authorizedDatabases' is currently not supported", with code 303.
func TestUnknownAuthorizedDatabases(t *testing.T) {
	s, err := embedded.Start(embedded.WithFront())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	refused := 0
	p := startProxy(t, s.Addr(), func(r request, pass func() []byte) []byte {
		if _, err := r.command.LookupErr("authorizedDatabases"); err != nil {
			return pass()
		}
		refused++
		return r.fail(303, "Field 'authorizedDatabases' is currently not supported")
	})
	insert(t, connectTo(t, s, "shop").Collection("users"), []any{bson.D{{Key: "_id", Value: uuid.NewString()}}})
	command(t, p, "scan").want(t, failure.ExitOK).prints(t, "shop.users: all 1 documents")
	if got, _ := complete(t, "scan", "--uri", p.URI(), "--db", "sh"); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("%q", got)
	}
	if refused < 2 {
		t.Errorf("the server refused the option %d times", refused)
	}
}

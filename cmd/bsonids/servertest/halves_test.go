package servertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A server that ends what exceeds its time limit gets half of a batch that did, and half of that. A
// document that takes too long alone is an error with its _id. Another server gets the same batch again.
func TestExpiredBatch(t *testing.T) {
	for _, tt := range []struct {
		enforces bool
		most     int // documents that the server writes within its limit
		code     int
		text     string
	}{
		{true, 3, failure.ExitOK, ""},
		{true, 0, failure.ExitFailed, "within the time limit of a batch, 30s"},
		{false, 3, failure.ExitUnreachable, "operation exceeded time limit"},
	} {
		for name, extra := range map[string][]string{"in place": nil, "copy": {"--into", "new"}} {
			t.Run(fmt.Sprint(name, " ", tt.enforces, " ", tt.most), func(t *testing.T) {
				s := mongotest.Start(t)
				db := connect(t, s)
				want := seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
				const expired = 50 // MaxTimeMSExpired
				p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
					of, _ := r.command.Lookup(r.name()).StringValueOK()
					limit, limited := r.command.Lookup("maxTimeMS").AsInt64OK()
					switch {
					case r.name() == "buildInfo":
						return r.reply(bson.D{{Key: "version", Value: "8.0.0"}, {Key: "ok", Value: 1.0}}) // FerretDB 1 is not asked
					case of == "c" && r.name() == "find" && limited && limit == 1:
						code := int32(168) // InvalidPipelineOperator
						if tt.enforces {
							code = expired
						}
						return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "errmsg", Value: "refused"}})
					case (r.name() == "update" && of == "c" && isBatch(r) || r.name() == "insert" && of == "new") && r.documents > tt.most:
						return r.refuse(expired, "operation exceeded time limit")
					}
					return pass()
				})
				args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--batch", "40",
					"--state", filepath.Join(t.TempDir(), "state")}, extra...)
				r := command(t, p, args...).want(t, tt.code)
				if !strings.Contains(r.stderr, tt.text) || tt.most == 0 && !strings.Contains(r.stderr, "document with _id") {
					t.Error(r.stderr)
				}
				if tt.code == failure.ExitOK {
					to := "c"
					if extra != nil {
						to = "new"
					}
					equal(t, all(t, db.Collection(to)), want)
				}
			})
		}
	}
}

// isBatch reports whether the updates of a command are those of a batch, as opposed to a probe.
func isBatch(r request) bool {
	v, err := r.command.LookupErr("ordered")
	return err == nil && v.Type == bson.TypeBoolean && !v.Boolean()
}

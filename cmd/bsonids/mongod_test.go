package main

import (
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// These tests have a server answer as mongod or mongos does, where FerretDB wouldn't. Error codes are those of MongoDB's
// src/mongo/base/error_codes.yml.

// What a router cannot reach, or a server cannot do at the moment, it reports for each document. No document is skipped for
// that: with the same subtype before and after, none could be converted any more. The run ends, and the same command goes on.
func TestNoMatterOfADocument(t *testing.T) {
	for _, tt := range []struct {
		code int32
		name string
		exit int
	}{
		{6, "HostUnreachable", exitUnreachable},
		{89, "NetworkTimeout", exitUnreachable},
		{133, "FailedToSatisfyReadPreference", exitUnreachable},
		{82, "NoProgressMade", exitUnreachable},
		{202, "NetworkInterfaceExceededTimeLimit", exitUnreachable},
		{13388, "StaleConfig", exitUnreachable},
		{9001, "SocketException", exitUnreachable},
		{10058, "LegacyNotPrimary", exitUnreachable},
		{11601, "Interrupted", exitFailed},
		{50, "MaxTimeMSExpired", exitUnreachable}, // the driver calls it a timeout
		{262, "ExceededTimeLimit", exitUnreachable},
		{24, "LockTimeout", exitFailed},
		{112, "WriteConflict", exitFailed},
		{365, "TemporarilyUnavailable", exitFailed},
		{371, "UserWritesBlocked", exitFailed},
		{462, "IngressRequestRateLimitExceeded", exitFailed},
		{14031, "OutOfDiskSpace", exitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mongotest.Start(t)
			db := connect(t, s)
			want := seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
			p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
				if r.name() != "update" || r.documents < 5 {
					return pass()
				}
				var refused bson.A
				for i := range r.documents {
					refused = append(refused, bson.D{{Key: "index", Value: int32(i)}, {Key: "code", Value: tt.code}, {Key: "errmsg", Value: "it was " + tt.name}})
				}
				return r.reply(bson.D{{Key: "n", Value: int32(0)}, {Key: "nModified", Value: int32(0)}, {Key: "writeErrors", Value: refused}, {Key: "ok", Value: 1.0}})
			})
			dir := t.TempDir()
			args := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--to", "csharpLegacy", "--write",
				"--state", filepath.Join(dir, "state"), "--undo", filepath.Join(dir, "undo")}
			if r := command(t, p, args...).want(t, tt.exit); !strings.Contains(r.stderr, "the same command goes on") || !strings.Contains(r.stderr, tt.name) {
				t.Error(r.stderr)
			}
			command(t, s, args...).want(t, exitOK)
			equal(t, all(t, db.Collection("c")), want)
		})
	}
}

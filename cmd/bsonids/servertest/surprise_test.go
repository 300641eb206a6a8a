package servertest

import (
	"crypto/md5"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// What a person said to leave is no surprise, and neither are nulls, empty strings, and values of other types in a
// field that is converted: apply and verify end with exit code 0, in place and into a copy. Text that is no UUID is of
// another type in all fields but those of text.
func TestNoSurprise(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		value    func(uuid.UUID) any
		others   []any // beside those that all have
	}{
		"another subtype":  {"javaLegacy", "standard", func(u uuid.UUID) any { return in(u, uuidrep.JavaLegacy) }, []any{bson.D{}, bson.D{{Key: "x", Value: 1}}}},
		"the same subtype": {"javaLegacy", "csharpLegacy", func(u uuid.UUID) any { return in(u, uuidrep.JavaLegacy) }, []any{bson.D{}}},
		"subtype 0":        {"generic", "standard", func(u uuid.UUID) any { return in(u, uuidrep.Unspecified) }, nil},
		"text":             {"text", "standard", func(u uuid.UUID) any { return u.String() }, []any{bson.D{}, bson.A{bson.D{{Key: "x", Value: "y"}}}}},
		"to text":          {"javaLegacy", "text", func(u uuid.UUID) any { return in(u, uuidrep.JavaLegacy) }, nil},
		"Go structs": {"goStruct", "standard", func(u uuid.UUID) any {
			return bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}, {Key: "valid", Value: true}}
		}, []any{v4(1).String(), bson.D{}, bson.D{{Key: "valid", Value: true}}, bson.D{{Key: "name", Value: "x"}}, bson.A{bson.D{{Key: "x", Value: bson.D{}}}}}},
	} {
		for _, copied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, copied %v", name, copied), func(t *testing.T) {
				s := mongotest.Start(t)
				coll := connect(t, s).Collection("c")
				var docs []any
				for i := range 60 {
					sum := md5.Sum(fmt.Append(nil, i))
					docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: tt.value(v4(i))}, {Key: "sum", Value: bson.Binary{Subtype: 3, Data: sum[:]}}})
				}
				if tt.from != "text" {
					tt.others = append(tt.others, "x", "not a UUID at all")
				}
				for i, v := range append(tt.others, nil, "", int32(7), int64(7), 7.5, bson.NewObjectID(), true, bson.A{}, bson.A{nil, "", int32(1)},
					bson.Binary{Subtype: 3, Data: []byte("short")}, bson.Binary{Subtype: 5, Data: make([]byte, 16)}) {
					docs = append(docs, bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "id", Value: v}})
				}
				insert(t, coll, docs)
				to := tt.to
				if to == "text" {
					to = "standard"
				}
				changes := []func(*plan.Plan){convertFields(tt.from, tt.to, "id")}
				if copied {
					changes = append(changes, intoNew("c"))
				}
				dir := prepared(t, s, to, changes...)
				for _, args := range [][]string{{"apply", dir}, applying(dir), applying(dir), {"verify", dir}, {"undo", dir, "--write"}} {
					command(t, s, args...).want(t, failure.ExitOK)
				}
			})
		}
	}
}

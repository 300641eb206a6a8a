package bulk

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// mostExact is the size in bytes of the writes that are sent at once if the server must not set
// timestamps. A larger document is sent alone.
const mostExact = 8 << 20

// exactly sends writes of documents that have an empty timestamp, Timestamp(0, 0), at the top level: it asks
// the server to store it, which sets the time otherwise. The driver has no option for this. A server that does
// not know the request gets the documents without it, by usual, and may set them.
func exactly(ctx context.Context, coll *mongo.Collection, command, field string, writes []bson.Raw, bypass bool, usual func(from, to int) (int64, []Refusal, error)) (matched int64, refused []Refusal, err error) {
	for from := 0; from < len(writes); {
		to, size := from+1, len(writes[from])
		for to < len(writes) && size+len(writes[to]) <= mostExact {
			size += len(writes[to])
			to++
		}
		var reply struct{ N int64 }
		err := coll.Database().RunCommand(ctx, bson.D{{Key: command, Value: coll.Name()}, {Key: field, Value: writes[from:to]}, {Key: "ordered", Value: false},
			{Key: "bypassDocumentValidation", Value: bypass}, {Key: "bypassEmptyTsReplacement", Value: true},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}}).Decode(&reply)
		var unknown mongo.CommandError
		var some []Refusal
		n := reply.N
		if errors.As(err, &unknown) && !failure.Transient(err) && !failure.Concerns(int(unknown.Code)) {
			n, some, err = usual(from, to)
		} else {
			n, some, err = counted(err, n)
		}
		if err != nil {
			return 0, nil, err
		}
		matched += n
		for _, f := range some {
			f.Index += from
			refused = append(refused, f)
		}
		from = to
	}
	return matched, refused, nil
}

// counted returns the refusals in the error of a command of several writes, and the number of documents
// in its reply.
func counted(err error, n int64) (int64, []Refusal, error) {
	var e mongo.WriteException
	if !errors.As(err, &e) {
		return n, nil, err
	}
	all := mongo.BulkWriteException{WriteConcernError: e.WriteConcernError}
	for _, we := range e.WriteErrors {
		all.WriteErrors = append(all.WriteErrors, mongo.BulkWriteError{WriteError: we})
	}
	n, _ = e.Raw.Lookup("n").AsInt64OK()
	refused, err := triage(all)
	return n, refused, err
}

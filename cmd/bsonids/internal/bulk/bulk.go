// Package bulk writes batches of documents, and separates the errors of single documents from the
// errors of the server.
package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// Timeout is the time limit of a batch that a server neither completes nor refuses. An interrupt
// does not end a batch.
const Timeout = 5 * time.Minute

// Enforced is the time limit of a batch that a server ends by itself at its limit.
const Enforced = 30 * time.Second

// MaxUpdate is the maximum size in bytes of the filter and the update of one document.
const MaxUpdate = 16 << 20

// Refusal is one write of a batch that the server refused.
type Refusal struct {
	Index     int    // index of the write in the batch
	Reason    string // a description
	Duplicate bool   // another document has the same value of a unique index
	Moved     bool   // a path no longer leads to a value: the document has changed
}

// Update sends updates, which the server may carry out in any order. matched is the number of
// documents that they matched. A refused update does not prevent the others. The error is an error
// of the server. Some of the updates may have been carried out despite it. The validator of the
// collection does not apply if bypass is set.
func Update(ctx context.Context, coll *mongo.Collection, updates []mongo.WriteModel, bypass bool) (matched int64, refused []Refusal, err error) {
	if len(updates) == 0 {
		return 0, nil, nil
	}
	res, err := coll.BulkWrite(ctx, updates, options.BulkWrite().SetOrdered(false).SetBypassDocumentValidation(bypass))
	if refused, err = triage(err); err != nil {
		return 0, nil, err
	}
	if res != nil {
		matched = res.MatchedCount
	}
	return matched, refused, nil
}

// Alone sends one update in a transaction of its own, as a sharded cluster asks for if it changes the shard key of a document.
// Its results are as those of [Update].
func Alone(ctx context.Context, coll *mongo.Collection, update *mongo.UpdateOneModel) (matched int64, refused []Refusal, err error) {
	session, err := coll.Database().Client().StartSession()
	if err != nil {
		return 0, nil, err
	}
	defer session.EndSession(context.WithoutCancel(ctx)) // which aborts a transaction that was not committed
	if err := session.StartTransaction(); err != nil {
		return 0, nil, err
	}
	ctx = mongo.NewSessionContext(ctx, session)
	res, err := coll.UpdateOne(ctx, update.Filter, update.Update)
	if err != nil {
		return counted(err, 0)
	}
	return res.MatchedCount, nil, session.CommitTransaction(ctx)
}

// Insert inserts documents in any order. Its parameters and results are as in [Update]. With exact, the
// server is asked to store empty timestamps at the top level as they are.
func Insert(ctx context.Context, coll *mongo.Collection, docs []bson.Raw, exact, bypass bool) (refused []Refusal, err error) {
	if exact {
		_, refused, err = exactly(ctx, coll, "insert", "documents", docs, bypass, func(from, to int) (int64, []Refusal, error) {
			refused, err := Insert(ctx, coll, docs[from:to], false, bypass)
			return 0, refused, err
		})
		return refused, err
	}
	if len(docs) == 0 {
		return nil, nil
	}
	_, err = coll.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false).SetBypassDocumentValidation(bypass))
	return triage(err)
}

// Replace replaces the documents that match the filters by docs. The parameters and results are as in [Update]
// and [Insert].
func Replace(ctx context.Context, coll *mongo.Collection, filters []bson.D, docs []bson.Raw, exact, bypass bool) (matched int64, refused []Refusal, err error) {
	if !exact {
		models := make([]mongo.WriteModel, len(docs))
		for i, doc := range docs {
			models[i] = mongo.NewReplaceOneModel().SetFilter(filters[i]).SetReplacement(doc)
		}
		return Update(ctx, coll, models, bypass)
	}
	updates := make([]bson.Raw, len(docs))
	for i, doc := range docs {
		if updates[i], err = bson.Marshal(bson.D{{Key: "q", Value: filters[i]}, {Key: "u", Value: doc}}); err != nil {
			return 0, nil, err
		}
	}
	return exactly(ctx, coll, "update", "updates", updates, bypass, func(from, to int) (int64, []Refusal, error) {
		return Replace(ctx, coll, filters[from:to], docs[from:to], false, bypass)
	})
}

// Delete sends deletions, and returns the number of documents that were deleted.
func Delete(ctx context.Context, coll *mongo.Collection, deletions []mongo.WriteModel) (int64, error) {
	res, err := coll.BulkWrite(ctx, deletions, options.BulkWrite().SetOrdered(false))
	if err != nil {
		return 0, err
	}
	return res.DeletedCount, nil
}

// Halved calls write with all writes of a batch, and if halves is set and the server ends that at its
// limit, with each half of them. A single write that takes too long is a [*documents.Error]. Some writes
// of a batch that the server ended may have been carried out.
func Halved[T any](all []T, halves bool, limit time.Duration, id func(T) bson.RawValue, write func([]T) error) error {
	err := write(all)
	if !halves || !failure.Means(err, failure.Expired) {
		return err
	}
	half := len(all) / 2
	if half == 0 {
		return TooSlow(id(all[0]), limit)
	}
	if err := Halved(all[:half], halves, limit, id, write); err != nil {
		return err
	}
	return Halved(all[half:], halves, limit, id, write)
}

// TooSlow returns the error of a single write that the server ended at the limit of a batch.
func TooSlow(id bson.RawValue, limit time.Duration) error {
	return &documents.Error{ID: id, Passes: true, Reason: fmt.Sprintf("the server did not write it within the time limit of a batch, %s: "+
		"a transaction or another operation holds it, or the server is overloaded", cmp.Or(limit, Timeout))}
}

// triage returns the refusals in err if err is about single documents, and err itself if it is
// about the server.
func triage(err error) ([]Refusal, error) {
	if err == nil {
		return nil, nil
	}
	var e mongo.BulkWriteException
	if !errors.As(err, &e) || e.WriteConcernError != nil || len(e.WriteErrors) == 0 {
		return nil, err
	}
	refused := make([]Refusal, len(e.WriteErrors))
	for i, we := range e.WriteErrors {
		if failure.Concerns(we.Code) {
			return nil, err
		}
		refused[i] = Refusal{Index: we.Index, Reason: reason(we.WriteError), Duplicate: mongo.IsDuplicateKeyError(we), Moved: failure.Means(we, failure.Moved)}
	}
	return refused, nil
}

// reason describes why the server refused a write.
func reason(we mongo.WriteError) string {
	switch {
	case mongo.IsDuplicateKeyError(we):
		return "another document has the value already, and an index is unique"
	case failure.Means(we, failure.Invalid):
		return "the validator of the collection rejects the changed document"
	}
	message, _, _ := strings.Cut(we.Message, "{")
	return fmt.Sprintf("the server rejected the update: %s (code %d)", strings.TrimSpace(message), we.Code)
}

package bulk

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// The codes are from src/mongo/base/error_codes.yml of MongoDB.
func TestTriage(t *testing.T) {
	writeErrors := func(codes ...int) mongo.BulkWriteException {
		var e mongo.BulkWriteException
		for i, code := range codes {
			e.WriteErrors = append(e.WriteErrors, mongo.BulkWriteError{WriteError: mongo.WriteError{Index: 2 * i, Code: code, Message: "why { update: 1 }"}})
		}
		return e
	}
	concern := writeErrors(11000)
	concern.WriteConcernError = &mongo.WriteConcernError{Code: 64}
	for name, tt := range map[string]struct {
		err  error
		want []Refusal // nil if the error is returned
	}{
		"duplicate, validator, moved, other": {writeErrors(11000, 121, 28, 9), []Refusal{
			{0, "another document has the value already, and an index is unique", true, false},
			{2, "the validator of the collection rejects the changed document", false, false},
			{4, "the server rejected the update: why (code 28)", false, true},
			{6, "the server rejected the update: why (code 9)", false, false},
		}},
		"a lost primary":           {writeErrors(11000, 10107), nil},
		"a missing privilege":      {writeErrors(13), nil},
		"a write concern":          {concern, nil},
		"no single document":       {mongo.BulkWriteException{}, nil},
		"another error altogether": {errors.New("x"), nil},
	} {
		got, err := triage(tt.err)
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
	if got, err := triage(nil); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// Every write is sent in the end, in batches that the server does not end, and none twice. A single write
// that takes too long is an error with its _id; another error is returned as it is.
func TestHalved(t *testing.T) {
	all := make([]bson.RawValue, 100)
	for i := range all {
		all[i] = bson.RawValue{Type: bson.TypeInt32, Value: []byte{byte(i), 0, 0, 0}}
	}
	id := func(v bson.RawValue) bson.RawValue { return v }
	for _, most := range []int{1, 2, 7, 50, 99, 100, 1000} {
		var sent []bson.RawValue
		err := Halved(all, true, time.Minute, id, func(some []bson.RawValue) error {
			if len(some) > most {
				return mongo.CommandError{Code: 50}
			}
			sent = append(sent, some...)
			return nil
		})
		if err != nil || !slices.EqualFunc(sent, all, bson.RawValue.Equal) {
			t.Errorf("at most %d: %d, %v", most, len(sent), err)
		}
	}
	var e *documents.Error
	slow := func(some []bson.RawValue) error {
		if some[len(some)-1].Int32() == 99 {
			return mongo.CommandError{Code: 50}
		}
		return nil
	}
	if err := Halved(all, true, time.Minute, id, slow); !errors.As(err, &e) || e.ID.Int32() != 99 {
		t.Error(err)
	}
	calls := 0
	for _, halves := range []bool{false, true} {
		code := 50
		if halves {
			code = 91 // ShutdownInProgress
		}
		err := Halved(all, halves, time.Minute, id, func([]bson.RawValue) error { calls++; return mongo.CommandError{Code: int32(code)} })
		if se := (mongo.CommandError{}); !errors.As(err, &se) || int(se.Code) != code {
			t.Error(err)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

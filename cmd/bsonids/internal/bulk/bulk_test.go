package bulk

import (
	"errors"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
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
			{0, "another document has the converted value, and an index is unique", true, false, false},
			{2, "the validator of the collection rejects the converted document", false, false, true},
			{4, "the server rejected the update: why (code 28)", false, true, false},
			{6, "the server rejected the update: why (code 9)", false, false, false},
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

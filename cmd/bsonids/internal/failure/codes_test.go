package failure

import (
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// The codes are those of src/mongo/base/error_codes.yml of MongoDB.
func TestMeans(t *testing.T) {
	write := func(code int) error {
		return mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Code: code}}}}
	}
	for name, tt := range map[string]struct {
		err        error
		means, not Meaning
	}{
		"MaxTimeMSExpired":        {write(50), Lost | Expired, Busy | Refused | Invalid},
		"NamespaceExists":         {fmt.Errorf("x: %w", mongo.CommandError{Code: 48}), Exists, Missing | Lost},
		"NamespaceNotFound":       {mongo.CommandError{Code: 26}, Missing, Exists},
		"CommandNotFound":         {mongo.CommandError{Code: 59}, Unknown | NoStream, Refused},
		"not in a replica set":    {mongo.CommandError{Code: 40573}, NoStream, Unknown},
		"ChangeStreamHistoryLost": {mongo.CommandError{Code: 286}, Forgotten, Lost | Busy},
		"Unauthorized":            {write(13), Unauthorized | Refused, Unauthenticated | Lost},
		"UserNotFound":            {mongo.CommandError{Code: 11}, Unauthenticated, Refused},
		"WriteConflict":           {write(112), Busy | Refused, Lost},
		"PathNotViable":           {write(28), Moved, Refused | Lost},
		"DuplicateKey":            {write(11000), 0, ^Meaning(0)},
		"not of a server":         {errors.New("50"), 0, ^Meaning(0)},
		"nothing":                 {nil, 0, ^Meaning(0)},
	} {
		for m := Lost; m <= Atlas; m <<= 1 {
			if got := Means(tt.err, m); tt.means&m != 0 && !got || tt.not&m != 0 && got {
				t.Errorf("%s: meaning %b: %v", name, m, got)
			}
		}
	}
	for code, m := range codes {
		if m == 0 || Concerns(code) != (Means(write(code), Lost|Refused)) {
			t.Errorf("%d", code)
		}
	}
}

package cutover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
)

// Asides keeps the documents that the old collections lack in files, one for each collection and each command: a document a line,
// in canonical extended JSON, as mongoimport reads it.
type Asides struct {
	Dir   string
	files map[string]*os.File // by the name of the collection
	seen  map[string]*hashset.Set
	Paths []string
}

// Keep writes a document of a collection to its file, once.
func (a *Asides) Keep(collection string, doc bson.Raw) error {
	f := a.files[collection]
	if f == nil {
		var err error
		if f, err = a.create(collection); err != nil {
			return &failure.Error{Kind: failure.Failed, Err: err, Text: "cannot write the documents that the old collection lacks: " + err.Error()}
		}
	}
	if seen := a.seen[collection]; seen.Has(doc) {
		return nil
	} else if !seen.Full() {
		seen.Add(doc)
	}
	line, err := bson.MarshalExtJSON(doc, true, false)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

func (a *Asides) create(collection string) (*os.File, error) {
	stem := filepath.Join(a.Dir, plan.Stem(kinds.Task{Collection: collection})+".written")
	for n := 1; ; n++ {
		path := stem + ".jsonl"
		if n > 1 {
			path = fmt.Sprintf("%s.%d.jsonl", stem, n)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if a.files == nil {
			a.files, a.seen = make(map[string]*os.File), make(map[string]*hashset.Set)
		}
		a.files[collection], a.seen[collection], a.Paths = f, hashset.New(), append(a.Paths, path)
		return f, nil
	}
}

// Close makes the files durable.
func (a *Asides) Close() error {
	var errs []error
	for _, f := range a.files {
		errs = append(errs, f.Sync(), f.Close())
	}
	return errors.Join(errs...)
}

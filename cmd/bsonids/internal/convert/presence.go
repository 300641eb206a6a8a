package convert

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// checkEvery is the interval at which a conversion asks whether its collections are there.
const checkEvery = time.Second

// LostError is the error of a run one of whose collections another program dropped, renamed or
// replaced meanwhile.
type LostError struct {
	Namespace string
	What      string // what became of the collection
}

func (e *LostError) Error() string {
	return e.Namespace + " " + e.What + " while the command ran, and what was read or written since is unknown"
}

// checkPresent returns a *LostError if no collection has the name of coll any more, or another one than
// that with the UUID. A nil UUID is that of any collection, because some servers give none.
func checkPresent(ctx context.Context, coll *mongo.Collection, uuid *bson.Binary) error {
	db := coll.Database()
	spec, err := server.Specification(ctx, coll)
	if err != nil {
		return err
	}
	there := spec.Name != ""
	if there && (uuid == nil || spec.UUID == nil || spec.UUID.Equal(*uuid)) {
		return nil
	}
	lost := &LostError{Namespace: db.Name() + "." + coll.Name(), What: "was dropped or renamed"}
	if uuid != nil {
		name, err := collectionWith(ctx, db, *uuid)
		if err != nil {
			return err
		}
		if name != "" {
			lost.What = fmt.Sprintf("was renamed to %s", name)
		}
	}
	if there {
		lost.What = "is another collection now: it was dropped or renamed"
	}
	return lost
}

// collectionWith returns the name of the collection with the UUID, or "" if there is none.
func collectionWith(ctx context.Context, db *mongo.Database, uuid bson.Binary) (string, error) {
	specs, err := db.ListCollectionSpecifications(ctx, bson.D{{Key: "info.uuid", Value: uuid}})
	for _, s := range specs {
		if s.UUID != nil && s.UUID.Equal(uuid) {
			return s.Name, err
		}
	}
	return "", err
}

// watch returns the presence of collections as they are now.
func watch(ctx context.Context, patient *patience.Patience, collections ...*mongo.Collection) (*presence, error) {
	p := &presence{patience: patient, now: time.Now}
	for _, coll := range collections {
		if err := p.bind(ctx, coll); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// presence tells whether collections are still those with which a run began. It is safe for concurrent
// use. A nil presence tells nothing.
type presence struct {
	patience *patience.Patience
	now      func() time.Time

	mu          sync.Mutex
	collections []present
	checked     time.Time
}

type present struct {
	*mongo.Collection
	uuid *bson.Binary // nil if the server gives none
}

// bind adds a collection with the UUID that it has now.
func (p *presence) bind(ctx context.Context, coll *mongo.Collection) error {
	return p.patience.Do(ctx, func() error {
		spec, err := server.Specification(ctx, coll) // or that of no collection, which check finds
		if err == nil {
			p.add(coll, spec.UUID)
		}
		return err
	})
}

func (p *presence) add(coll *mongo.Collection, uuid *bson.Binary) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.collections = append(p.collections, present{coll, uuid})
}

// check returns a *LostError if one of the collections was dropped, renamed or replaced.
func (p *presence) check(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.collections {
		if err := p.patience.Do(ctx, func() error { return checkPresent(ctx, c.Collection, c.uuid) }); err != nil {
			return err
		}
	}
	p.checked = p.now()
	return nil
}

// after returns the error with which work on the collections ended: a *LostError if one of them is gone,
// which may be why the work failed, or else failed.
func (p *presence) after(ctx context.Context, failed error) error {
	var lost *LostError
	if errors.As(failed, &lost) || ctx.Err() != nil || failed != nil && failure.Transient(failed) {
		return failed
	}
	if err := p.check(ctx); err != nil && (failed == nil || errors.As(err, &lost)) {
		return err
	}
	return failed
}

// sometimes is check, once in checkEvery.
func (p *presence) sometimes(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	due := p.now().Sub(p.checked) >= checkEvery
	p.mu.Unlock()
	if !due {
		return nil
	}
	return p.check(ctx)
}

// Package generic stores documents through functions and types of another package, and imports no driver. // want package:`driver: `
package generic

import (
	"context"
	"io"

	"github.com/google/uuid"

	"example.com/shop/repo"
)

// Types that no registry knows.
type (
	OrderID   [16]byte
	ItemID    [16]byte
	CacheID   [16]byte
	Key       [16]byte
	PageID    [16]byte
	SavedID   [16]byte
	LoggedID  [16]byte
	AliasedID [16]byte
	PartID    [16]byte
	TaggedID  [16]byte
	Wrapper   struct{ uuid.UUID }
)

type Order struct {
	ID      OrderID // want `a registry of bsoncodec refuses OrderID, which is of kind \[16\]byte and not registered, in the field ID`
	Wrapped Wrapper // want `a registry of bsoncodec refuses Wrapper, a struct around a UUID`
	Parts   []Part
	Raw     []byte
	hidden  PartID
}

type Part struct {
	ID PartID // want `refuses PartID`
}

type Item struct {
	ID ItemID // want `refuses ItemID`
}

type Cached struct{ ID CacheID }

type Saved struct {
	ID SavedID // want `refuses SavedID`
}

type Logged struct{ ID LoggedID }

type Aliased struct {
	ID AliasedID // want `refuses AliasedID`
}

type Tagged struct {
	ID TaggedID `bson:"_id"` // want `refuses TaggedID`
}

type orders = repo.Repo[uuid.UUID, Order]

type service struct {
	items  *repo.Audited[*Item]
	cached repo.Cache[Cached]
	keyed  repo.Repo[Key, Tagged] // want `refuses Key`
}

type (
	alias     = Aliased
	aliasRepo = repo.Repo[string, alias]
)

func store(ctx context.Context, s *service, u uuid.UUID) error {
	repo.Log(Logged{})
	_ = orders{}
	_ = Order{Raw: u[:]} // want `the bytes of a UUID in the field Raw`
	var doc any = Saved{}
	if err := repo.Save(ctx, nil, "", doc); err != nil {
		return err
	}
	return repo.InsertPage(ctx, nil, PageID{}) // want `refuses PageID`
}

// Untouched reaches nothing.
type Untouched struct {
	ID CacheID
	R  io.Reader
}

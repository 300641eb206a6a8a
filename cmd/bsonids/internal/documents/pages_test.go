package documents

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// What is read ahead is what is read, in its order, up to an error, the end, or an interrupt.
func TestAhead(t *testing.T) {
	page := func(i int) []bson.Raw { return []bson.Raw{marshal(t, bson.D{{Key: "_id", Value: int32(i)}})} }
	errRead := errors.New("the server refused")
	for _, pages := range []int{0, 1, 2, 10} {
		for _, last := range []error{nil, errRead} {
			for _, visits := range []int{pages + 1, pages / 2} { // all, or the reader stops before
				calls := 0
				then, stop := ahead(t.Context(), func(ctx context.Context) ([]bson.Raw, error) {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					if calls++; calls > pages {
						return nil, last
					}
					return page(calls), nil
				})
				for i := range visits {
					docs, err := then(t.Context())
					if i < pages && (err != nil || !slices.Equal(docs[0], page(i + 1)[0])) || i == pages && (len(docs) > 0 || err != last) {
						t.Errorf("%d pages, page %d: got %v and %v", pages, i, docs, err)
					}
				}
				stop()
				if calls < visits || calls > visits+1 {
					t.Errorf("%d pages: %d were read for %d", pages, calls, visits)
				}
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	then, stop := ahead(ctx, func(ctx context.Context) ([]bson.Raw, error) { return page(1), ctx.Err() })
	cancel()
	for i := 0; ; i++ {
		if _, err := then(ctx); errors.Is(err, context.Canceled) {
			break
		} else if i > 1 || err != nil {
			t.Fatalf("interrupted: got %v", err)
		}
	}
	stop()
}

// A page of large documents ends before it exceeds its memory, and the next page continues there.
func TestPagesOfLargeDocuments(t *testing.T) {
	s := memory.Start(t)
	coll := s.Client.Database("d").Collection("c")
	var all []bson.Raw
	for i := range 5 {
		all = append(all, marshal(t, bson.D{{Key: "_id", Value: i}, {Key: "x", Value: make([]byte, 1000)}}))
	}
	s.Put(coll, all...)
	p := &Pages{Collection: coll, Size: 1000, Bytes: 3500}
	var got []int
	for {
		docs, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(docs) == 0 {
			break
		}
		got = append(got, len(docs))
	}
	if !slices.Equal(got, []int{4, 1}) {
		t.Errorf("pages of %v documents", got)
	}
}

// A query is not larger than a command may be, which is 16 MiB and 16 KiB on a server, however large the _ids are.
func TestLargeIDs(t *testing.T) {
	s := memory.Start(t)
	coll := s.Client.Database("d").Collection("c")
	var all []bson.Raw
	var ids []bson.RawValue
	for i := range 5 {
		doc := marshal(t, bson.D{{Key: "_id", Value: append([]byte{byte(i)}, make([]byte, 7<<20)...)}})
		all, ids = append(all, doc), append(ids, doc.Lookup("_id"))
	}
	s.Put(coll, all...)
	s.Before = func(_ string, command bson.Raw) (f memory.Fault) {
		if len(command) > 16<<20+16<<10 {
			f.Code = 10334 // BSONObjectTooLarge
		}
		return f
	}
	if docs, err := ByID(t.Context(), coll, ids, nil, nil); err != nil || len(docs) != len(all) {
		t.Errorf("%d documents, %v", len(docs), err)
	}
}

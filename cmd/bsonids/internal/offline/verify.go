package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

// Verified is the result of the comparison of a dump with its conversion.
type Verified struct {
	Result
	Compared           // of all collections
	Other    int64     `json:"otherDifferences"` // in metadata, files and collections
	Findings []Finding `json:"findings,omitempty"`
}

// Compared is how many documents are equal to those that the conversion makes, and how many differ.
type Compared struct {
	Equal   int64 `json:"documentsEqual"`
	Wrong   int64 `json:"documentsWrong"`
	Missing int64 `json:"documentsMissing"` // in the output
	Extra   int64 `json:"documentsExtra"`   // in the output
}

// Finding is a difference.
type Finding struct {
	Namespace string
	ID        bson.RawValue // zero if it is not one of a document
	Reason    string
}

// MarshalJSON writes the _id in extended JSON.
func (f Finding) MarshalJSON() ([]byte, error) {
	doc := bson.D{{Key: "collection", Value: f.Namespace}, {Key: "_id", Value: f.ID}, {Key: "reason", Value: f.Reason}}
	if f.ID.Type == 0 {
		doc = slices.Delete(doc, 1, 2)
	}
	return bson.MarshalExtJSON(doc, false, false)
}

// Holds reports whether the output is the conversion of the input.
func (v *Verified) Holds() bool { return v.Wrong+v.Missing+v.Extra+v.Other == 0 }

// proof compares what a job makes of its input with another dump.
type proof struct {
	Verified
	ctx context.Context
	run *run
	out *source.Dump
}

// over is the kind of the item at the end of a dump.
const over dump.ItemKind = -1

// errOther ends the comparison of dumps that have different files or collections.
var errOther = errors.New("the dumps have different files or collections")

// Verify compares the output, item by item, with what the job makes of its input. The output must
// have the order of the input, as Convert writes it.
func Verify(ctx context.Context, j Job, output *dump.Input) (_ Verified, err error) {
	p := proof{ctx: ctx, run: newRun(&j)}
	if j.Input.Form != output.Form {
		p.other(nil, "one is a file, an archive or a directory, and the other is not")
		return p.Verified, nil
	}
	if !j.Input.Side() || !output.Side() { // a single file, perhaps of a pipe, is compared alone
		j.Input.LeaveSide()
		output.LeaveSide()
	}
	p.out = source.OpenDump(output, func(int) {})
	defer func() { err = errors.Join(err, p.out.Close()) }()
	p.run.write = p.write
	if err = p.next(); err == nil {
		err = p.run.pass(ctx)
	}
	if err == nil {
		err = p.write(&dump.Item{Kind: over})
	}
	if errors.Is(err, errOther) {
		err = nil
	}
	p.Result = p.run.res
	for _, c := range p.Collections {
		p.Equal, p.Wrong, p.Missing, p.Extra = p.Equal+c.Equal, p.Wrong+c.Wrong, p.Missing+c.Missing, p.Extra+c.Extra
	}
	return p.Verified, err
}

// next reads the next item of the output.
func (p *proof) next() error {
	err := p.out.NextItem(p.ctx)
	if errors.Is(err, io.EOF) {
		p.out.Item, err = dump.Item{Kind: over}, nil
	}
	return err
}

// write compares the next item that the job makes with the one of the output.
func (p *proof) write(a *dump.Item) error {
	b := &p.out.Item
	for b.Kind == dump.Document && a.Kind != dump.Document {
		p.find(b, "the input has no such document").Extra++
		if err := p.next(); err != nil {
			return err
		}
	}
	switch {
	case a.Kind == dump.Document && b.Kind != dump.Document:
		p.find(a, "the output has no such document").Missing++
		return nil
	case a.Kind != b.Kind || a.Name != b.Name:
		p.other(nil, "%v: %s and %s", errOther, describe(a), describe(b))
		return errOther
	}
	p.pair(a, b)
	return p.next()
}

// pair compares two items of the same kind.
func (p *proof) pair(a, b *dump.Item) {
	equal, same := bytes.Equal(a.Bytes, b.Bytes), a.Collection == nil || a.Collection.String() == b.Collection.String()
	switch {
	case a.Kind == dump.Document && equal && same:
		p.run.collection(a.Collection).Equal++
	case a.Kind == dump.Document:
		p.find(b, "it is not the conversion of the document of the input in its place")
		p.run.collection(a.Collection).Wrong++
	case a.Kind == dump.Metadata && !equal:
		p.other(b, "its metadata is not that of the input")
	case a.Kind == dump.Closed && !same: // the readers have compared the checksums
		p.other(b, "the input has the end of %s in its place", a.Collection)
	case a.Kind == dump.Raw && !equal:
		p.other(b, "bytes that are not documents differ")
	}
}

// find lists a difference of a document, and returns its collection.
func (p *proof) find(item *dump.Item, reason string) *Collection {
	id := bson.Raw(item.Bytes).Lookup("_id")
	id.Value = bytes.Clone(id.Value)
	c := p.run.named(item.Collection.String())
	p.list(Finding{c.Namespace, id, reason})
	return c
}

// other counts and lists a difference that is not one of a document.
func (p *proof) other(item *dump.Item, format string, args ...any) {
	f := Finding{Reason: fmt.Sprintf(format, args...)}
	if item != nil && item.Collection != nil {
		f.Namespace = item.Collection.String()
	}
	p.Other++
	p.list(f)
}

func (p *proof) list(f Finding) {
	if len(p.Findings) < 20 {
		p.Findings = append(p.Findings, f)
	}
}

func describe(item *dump.Item) string {
	switch {
	case item.Kind == over:
		return "the end"
	case item.Kind == dump.Begin:
		return item.Name
	case item.Collection != nil:
		return item.Collection.String()
	case item.Kind == dump.End:
		return "the end of a file"
	}
	return "something else"
}

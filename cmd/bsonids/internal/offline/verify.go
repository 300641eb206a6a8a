package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Verified is the result of the comparison of a dump with its conversion.
type Verified struct {
	Result
	Equal    int64 // to the converted document of the input
	Wrong    int64
	Missing  int64 // in the output
	Extra    int64 // in the output
	Other    int64 // in metadata, files and collections
	Findings []Finding
	// ByCollection has the comparisons of the documents of each collection, by namespace.
	ByCollection map[string]*Compared
}

// Compared is how many documents of a collection are equal to those that the conversion makes, and how many
// differ.
type Compared struct{ Equal, Wrong, Missing, Extra int64 }

// of returns the comparisons of the collection of an item.
func (v *Verified) of(item *dump.Item) *Compared {
	name := item.Collection.String()
	if v.ByCollection[name] == nil {
		v.ByCollection[name] = &Compared{}
	}
	return v.ByCollection[name]
}

// Finding is a difference.
type Finding struct {
	Namespace string
	ID        bson.RawValue
	Reason    string
}

// Holds reports whether the output is the conversion of the input.
func (v *Verified) Holds() bool { return v.Wrong+v.Missing+v.Extra+v.Other == 0 }

const maxFindings = 20

func (v *Verified) find(item *dump.Item, format string, args ...any) {
	if len(v.Findings) >= maxFindings {
		return
	}
	f := Finding{Reason: fmt.Sprintf(format, args...)}
	if item != nil && item.Collection != nil {
		f.Namespace = item.Collection.String()
		if item.Kind == dump.Document {
			id := bson.Raw(item.Bytes).Lookup("_id")
			f.ID = bson.RawValue{Type: id.Type, Value: bytes.Clone(id.Value)}
		}
	}
	v.Findings = append(v.Findings, f)
}

// Verify compares the output, item by item, with what the job makes of its input. The output must
// have the order of the input, as Convert writes it.
func Verify(ctx context.Context, j Job, output *dump.Input) (v Verified, err error) {
	j.Output, j.SkipList = nil, nil
	r := newRun(&j)
	v.ByCollection = make(map[string]*Compared)
	if j.Input.Form != output.Form {
		v.Other++
		v.find(nil, "one is a file, an archive or a directory, and the other is not")
		return v, nil
	}
	if !j.Input.Side() || !output.Side() { // a single file, perhaps of a pipe, is compared alone
		j.Input.LeaveSide()
		output.LeaveSide()
	}
	in, err := source.OpenDump(j.Input, j.Progress)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := source.OpenDump(output, func(int) {})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	p := &proof{Verified: &v, run: r, in: in, out: out, a: &in.Item, b: &out.Item}
	err = p.compare(ctx)
	v.Result = r.res
	if err == nil && p.a.Kind == over {
		err = r.another()
	}
	return v, err
}

// proof compares two dumps.
type proof struct {
	*Verified
	run     *run
	in, out *source.Dump
	a, b    *dump.Item // of in and out
}

// next reads the next item of a dump, or sets one of the kind over at its end. It leaves out the
// beginning and the end of a single file, which a pipe does not have.
func (p *proof) next(ctx context.Context, d *source.Dump) error {
	for {
		err := d.NextItem(ctx)
		switch kind := d.Item.Kind; {
		case errors.Is(err, io.EOF):
			d.Item, err = dump.Item{Kind: over}, nil
		case err == nil && p.run.Input.Form == dump.File && (kind == dump.Begin || kind == dump.End):
			continue
		}
		return err
	}
}

const over dump.ItemKind = -1

func (p *proof) compare(ctx context.Context) error {
	if err := errors.Join(p.read(ctx), p.next(ctx, p.out)); err != nil {
		return err
	}
	for p.a.Kind != over || p.b.Kind != over {
		first, second := true, true
		switch {
		case p.a.Kind == dump.Document && p.b.Kind != dump.Document:
			p.Missing++
			p.of(p.a).Missing++
			p.find(p.a, "the output has no such document")
			second = false
		case p.b.Kind == dump.Document && p.a.Kind != dump.Document:
			p.Extra++
			p.of(p.b).Extra++
			p.find(p.b, "the input has no such document")
			first = false
		case p.a.Kind != p.b.Kind || p.a.Kind == dump.Begin && p.a.Path != p.b.Path:
			p.Other++
			p.find(nil, "the dumps have different files or collections: %s and %s", describe(p.a), describe(p.b))
			return nil
		default:
			p.pair()
		}
		if first {
			if err := p.read(ctx); err != nil {
				return err
			}
		}
		if second {
			if err := p.next(ctx, p.out); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the next item of the input and converts it.
func (p *proof) read(ctx context.Context) error {
	if err := p.next(ctx, p.in); err != nil || p.a.Kind == over {
		return err
	}
	err := p.run.item(p.a)
	if errors.Is(err, walk.ErrCorrupt) {
		err = p.in.Damaged(err)
	}
	return err
}

// pair compares two items of the same kind.
func (p *proof) pair() {
	equal := bytes.Equal(p.a.Bytes, p.b.Bytes)
	switch p.a.Kind {
	case dump.Document:
		if equal && p.a.Collection.String() == p.b.Collection.String() || equal && p.run.Input.Form == dump.File {
			p.Equal++
			p.of(p.a).Equal++
			return
		}
		p.Wrong++
		p.of(p.a).Wrong++
		p.find(p.b, "it is not the conversion of the document of the input in its place")
	case dump.Metadata:
		if !equal {
			p.Other++
			p.find(p.b, "its metadata is not that of the input")
		}
	case dump.Closed: // the readers have compared the checksums
		if p.a.Collection.String() != p.b.Collection.String() {
			p.Other++
			p.find(p.b, "the input has the end of %s in its place", p.a.Collection)
		}
	case dump.Raw:
		if !equal {
			p.Other++
			p.find(p.file(), "bytes that are not documents differ")
		}
	}
}

func (p *proof) file() *dump.Item { return &dump.Item{Kind: dump.Raw, Collection: p.b.Collection} }

func describe(item *dump.Item) string {
	switch {
	case item.Kind == over:
		return "the end"
	case item.Kind == dump.Begin:
		return item.Path
	case item.Collection != nil:
		return item.Collection.String()
	case item.Kind == dump.End:
		return "the end of a file"
	}
	return "something else"
}

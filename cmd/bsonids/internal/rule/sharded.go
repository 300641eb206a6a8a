package rule

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// partOfKey is why a document is left in which an update cannot replace a part without another one.
const partOfKey = "a field of the shard key is in the document, and a document must keep that; convert into a new collection"

// Sharded sets the shard key of the edits of a document, whose fields have the paths, if changes are about it.
func (p *Edits) Sharded(doc bson.Raw, paths []string) {
	p.Changes = slices.DeleteFunc(p.Changes, func(ch Change) bool {
		whole := slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(path, ch.Path+".") })
		if whole {
			p.Skipped = append(p.Skipped, ch.Left(partOfKey))
		}
		return whole
	})
	if !slices.ContainsFunc(p.Changes, func(ch Change) bool { return ch.within(paths) }) {
		return
	}
	p.Key = nil
	for _, path := range paths {
		v := doc.Lookup(strings.Split(path, ".")...)
		if v.Type == 0 { // a key without the field is as one with null
			v.Type = bson.TypeNull
		}
		p.Key = append(p.Key, bson.E{Key: path, Value: bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)}})
	}
}

// within reports whether the change is of a field with one of the paths, or in it.
func (ch Change) within(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return ch.Path == path || strings.HasPrefix(ch.Path, path+".") })
}

// inKey reports whether the change is of the shard key.
func (p *Edits) inKey(ch Change) bool {
	return slices.ContainsFunc(p.Key, func(e bson.E) bool { return ch.within([]string{e.Key}) })
}

// WithoutKey returns the edits without the changes of the shard key, and these as values that are left for the reason.
func (p Edits) WithoutKey(reason string) (rest Edits, left []Left) {
	rest = p
	rest.Changes, rest.Key = nil, nil
	for _, ch := range p.Changes {
		if p.inKey(ch) {
			left = append(left, ch.Left(reason))
		} else {
			rest.Changes = append(rest.Changes, ch)
		}
	}
	return rest, left
}

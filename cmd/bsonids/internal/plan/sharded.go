package plan

import (
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/shell"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// sharded says what it means for the conversion that collections are sharded.
func (b *builder) sharded(p *Plan) {
	for i := range p.Collections {
		c := &p.Collections[i]
		at := slices.IndexFunc(b.survey.Collections, func(o survey.Collection) bool { return o.Name == c.Name && o.Filter == c.Filter })
		if at < 0 || b.survey.Collections[at].Sharded == nil || c.left() {
			continue
		}
		of := b.survey.Collections[at]
		if c.Into == "" {
			c.Comment = append(c.Comment, of.Sharded.String())
			for j := range c.Fields {
				c.Fields[j].inShardKey(of)
			}
			continue
		}
		c.Comment = append(c.Comment, of.Sharded.String()+". A new collection that apply makes lies on one shard: make it before, with the same key:")
		for _, command := range of.Sharded.Commands(p.Database, c.Into, of.Settings, false) {
			c.Comment = append(c.Comment, "  "+command)
		}
		c.Comment = append(c.Comment, "or accept with accepted: true that it is not sharded: bsonids cutover then leaves it out.")
	}
}

// inShardKey says what can convert a field if it is in the shard key.
func (f *Field) inShardKey(of survey.Collection) {
	if _, ok := f.Decision.From(); !ok || InID(f.Path) || !inKey(f.Plain(), of.Sharded.Paths()) {
		return
	}
	f.comment("in the shard key %s", shell.Expression(of.Sharded.Key))
	f.comment("In place, each document is changed in a transaction of its own, which may move it to another shard, and is slower; what the")
	f.comment("server refuses is left and listed. A new collection, which into makes, is sharded by the new values from the beginning.")
}

// inKey reports whether a change of the field changes a value of a key with the paths.
func inKey(field string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return p == field || strings.HasPrefix(field, p+".") || strings.HasPrefix(p, field+".")
	})
}

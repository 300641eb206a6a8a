package plan

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/constants"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/shell"
)

// Rewritten is a validator, a partial index or a view with UUIDs that are converted.
type Rewritten struct {
	Of string `json:"of"` // names it
	Is string `json:"is"` // an expression of mongosh
	// Becomes has the definition after the conversion: one, or one for each reading of UUIDs whose byte order cannot be told.
	Becomes []Becomes `json:"becomes"`
	When    string    `json:"when"` // to run the commands
}

// Becomes is a definition after the conversion.
type Becomes struct {
	// From is the kind as which UUIDs are read whose byte order cannot be told. It is empty if all can be told.
	From     string   `json:"from,omitempty"`
	Is       string   `json:"is"`
	Commands []string `json:"commands"` // for mongosh
}

// definitionsComment explains the list of definitions.
var definitionsComment = []string{
	"Validators, partial indexes and views with UUIDs that are converted. bsonids does not change them. Run the commands in",
	"mongosh when they say, or keep the definition, and add accepted: true. apply refuses to begin until each has it.",
}

// Rewrite returns those of the definitions of the database that have UUIDs that the plan converts.
func (p *Plan) Rewrite(all constants.Definitions) (out []Rewritten) {
	for _, d := range all {
		var readings []string // of UUIDs whose byte order cannot be told
		found := false
		all.Replace(d, func(c constants.Constant) *bson.RawValue {
			pairs := p.readings(c)
			found = found || len(pairs) > 0
			if fresh := converted(c, pairs); len(fresh) > 1 {
				for _, pair := range pairs {
					if !slices.Contains(readings, pair.From) {
						readings = append(readings, pair.From)
					}
				}
			}
			return nil
		})
		if !found {
			continue
		}
		r := Rewritten{Of: d.String(), Is: shell.ValueOf(d.Is), When: p.when(d, all)}
		for _, from := range append([]string{""}, readings...) {
			if from == "" && len(readings) > 0 {
				continue
			}
			is := all.Replace(d, func(c constants.Constant) *bson.RawValue {
				pairs := p.readings(c)
				if i := slices.IndexFunc(pairs, func(pair kinds.Pair) bool { return pair.From == from }); i >= 0 {
					pairs = pairs[i : i+1]
				}
				if fresh := converted(c, pairs); len(fresh) > 0 {
					return &fresh[0]
				}
				return nil
			})
			r.Becomes = append(r.Becomes, Becomes{From: from, Is: shell.ValueOf(is), Commands: p.commands(d, is)})
		}
		out = append(out, r)
	}
	return out
}

// converted returns what a constant becomes by the pairs, each value once.
func converted(c constants.Constant, pairs []kinds.Pair) (fresh []bson.RawValue) {
	old := rule.ValueOf(c.Value.Type, c.Value.Value)
	for _, pair := range pairs {
		conv, err := rule.Compile([]kinds.Pair{{From: pair.From, Fields: []string{"any"}}})
		if err != nil {
			continue
		}
		v, ok := conv.Fresh(old)
		if raw := v.Raw(); ok && !slices.ContainsFunc(fresh, raw.Equal) {
			fresh = append(fresh, raw)
		}
	}
	return fresh
}

// readings returns how a constant may be read if it is of values that are converted: by the decision about the field that it
// is compared with, or else in each way in which such values may be stored.
func (p *Plan) readings(c constants.Constant) (pairs []kinds.Pair) {
	if len(p.Only) > 0 && c.Path != "" && !slices.Contains(p.Only, c.Collection) {
		return nil
	}
	known, open, any := false, false, false
	for _, coll := range p.Collections {
		for _, f := range coll.Fields {
			pair, ok := f.Decision.pair()
			if f.Stored != c.Stored {
				continue
			}
			any = any || ok || f.Decision == Unknown
			if c.Path == "" || coll.Name != c.Collection || f.Plain() != c.Path {
				continue
			}
			known, open = true, open || f.Decision == Unknown
			if ok && !slices.ContainsFunc(pairs, pair.Equal) {
				pairs = append(pairs, pair)
			}
		}
	}
	if known && !open || !any {
		return pairs
	}
	pairs = nil
	for _, k := range c.Stored.Kinds() {
		if k.Name != kinds.Standard {
			pairs = append(pairs, kinds.Pair{From: k.Name})
		}
	}
	return pairs
}

// into returns the new collection of a collection, or "".
func (p *Plan) into(name string) string {
	for _, c := range p.Collections {
		if c.Name == name && c.Into != "" {
			return c.Into
		}
	}
	return ""
}

// when says when the commands are to be run.
func (p *Plan) when(d constants.Definition, all constants.Definitions) string {
	copied := p.into(d.Name) != ""
	switch {
	case d.Of == constants.Validator && copied:
		return "before bsonids apply --write, which then copies into it: the validator would refuse converted documents"
	case d.Of == constants.Validator:
		return "before bsonids apply --write: the validator would refuse converted values; from then on, it refuses old ones"
	case d.Of == constants.Index && copied:
		return "when bsonids apply has made the copy, before bsonids cutover"
	case d.Of == constants.View && p.shows(d, all, 0):
		return "after bsonids cutover"
	}
	return "when bsonids apply is done: until then, some documents have old values"
}

// shows reports whether a view shows documents of a collection that is copied.
func (p *Plan) shows(d constants.Definition, all constants.Definitions, depth int) bool {
	if p.into(d.On) != "" {
		return true
	}
	return depth < len(all) && slices.ContainsFunc(all, func(o constants.Definition) bool {
		return o.Of == constants.View && o.Name == d.On && p.shows(o, all, depth+1)
	})
}

// commands returns the commands for mongosh that change a definition.
func (p *Plan) commands(d constants.Definition, is bson.RawValue) []string {
	name := d.Name
	into := p.into(name)
	if into != "" {
		name = into
	}
	run := func(command bson.D) string {
		return shell.Database(p.Database) + "." + shell.Call("runCommand", shell.Expression(command))
	}
	switch d.Of {
	case constants.View:
		return []string{run(bson.D{{Key: "collMod", Value: d.Name}, {Key: "viewOn", Value: d.On}, {Key: "pipeline", Value: is}})}
	case constants.Index:
		var spec bson.D
		if bson.Unmarshal(d.All, &spec) != nil {
			return nil
		}
		spec = slices.DeleteFunc(spec, func(e bson.E) bool { return e.Key == "v" || e.Key == "ns" })
		for i := range spec {
			if spec[i].Key == "partialFilterExpression" {
				spec[i].Value = is
			}
		}
		return []string{
			run(bson.D{{Key: "dropIndexes", Value: name}, {Key: "index", Value: d.Index}}),
			run(bson.D{{Key: "createIndexes", Value: name}, {Key: "indexes", Value: bson.A{spec}}}),
		}
	}
	if into != "" {
		settings := server.CreateOptions(d.All)
		for i := range settings {
			if settings[i].Key == "validator" {
				settings[i].Value = is
			}
		}
		return []string{shell.Call(shell.Database(p.Database)+".createCollection", shell.Text(into), shell.Expression(settings))}
	}
	return []string{run(bson.D{{Key: "collMod", Value: name}, {Key: "validator", Value: is}})}
}

// define returns the entries of those of the definitions that have UUIDs that the plan converts.
func (p *Plan) define(all constants.Definitions) (entries []Definition) {
	for _, r := range p.Rewrite(all) {
		d := Definition{Of: r.Of, Is: r.Is}
		d.Comment = append(d.Comment, r.Of+", to be changed "+r.When+":")
		for _, c := range r.Becomes {
			if c.From != "" {
				d.Comment = append(d.Comment, fmt.Sprintf("if UUIDs whose byte order cannot be told are %s:", c.From))
			}
			for _, command := range c.Commands {
				d.Comment = append(d.Comment, "  "+command)
			}
		}
		entries = append(entries, d)
	}
	return entries
}

// Unaccepted returns the names of those of the definitions that the plan does not accept as they are.
func (p *Plan) Unaccepted(all []Rewritten) (names []string) {
	for _, r := range all {
		if !slices.ContainsFunc(p.Definitions, func(d Definition) bool { return d.Of == r.Of && d.Is == r.Is && d.Accepted }) {
			names = append(names, r.Of)
		}
	}
	return names
}

// DefinitionsError is the error of definitions that are not accepted.
func DefinitionsError(names []string, dir string) string {
	return fmt.Sprintf("UUIDs that are converted are in definitions, which bsonids does not change: %s; bsonids plan %s has the commands, for each of which add accepted: true", strings.Join(names, ", "), dir)
}

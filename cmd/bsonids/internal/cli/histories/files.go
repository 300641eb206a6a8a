package histories

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// decisions are what a plan converts.
type decisions []decision

type decision struct {
	collection string
	part       int32 // of the documents that it selects; -1 for all
	kinds      map[string]string
}

// of returns the kind from which a value is converted; ok is false if it is left.
func (d decisions) of(name string, id int32, v *value) (kind string, ok bool) {
	for _, e := range d {
		if kind, ok := e.kinds[v.field]; ok && e.collection == name && (e.part < 0 || e.part == id%2) {
			return kind, v.fresh[kind].Type != 0
		}
	}
	return "", false
}

// filters select half of the documents of a collection each.
var filters = []string{`{"part":{"$numberInt":"0"}}`, `{"part":{"$numberInt":"1"}}`}

// decisions returns what the plan of a directory says; ok is false if it is none.
func (h *history) decisions(dir string) (all decisions, ok bool) {
	p, err := plan.ReadFile(dir)
	if err != nil {
		return nil, false
	}
	for _, c := range p.Collections {
		d := decision{c.Name, int32(slices.Index(filters, c.Filter)), make(map[string]string)}
		if c.Filter != "" && d.part < 0 { // a damaged plan
			continue
		}
		for _, f := range c.Fields {
			if kind, ok := f.Decision.From(); ok {
				d.kinds[f.Plain()] = kind
			}
		}
		all = append(all, d)
	}
	return all, true
}

// planned makes the directories: two migrations, and a copy of the first one on another machine.
func (h *history) planned() {
	top := h.TempDir()
	for i := range 2 {
		h.made(filepath.Join(top, fmt.Sprint(i)))
	}
	h.dirs = []string{filepath.Join(top, "0"), filepath.Join(top, "1"), filepath.Join(top, "copy")}
	h.try(os.CopyFS(h.dirs[2], os.DirFS(h.dirs[0])))
	h.plans[h.dirs[2]], h.first[h.dirs[2]] = h.plans[h.dirs[0]], h.plans[h.dirs[0]]
}

// made makes the directory of a migration, with decisions about all fields.
func (h *history) made(dir string) {
	if r := h.run("plan", dir, "--db", h.DB.Name()); r.Code != failure.ExitOK {
		h.fail("the plan of a new directory cannot be made")
	}
	h.change(dir, func(p *plan.Plan) {
		each(p, func(f *plan.Field) { h.decide(f) })
		for i := range p.References {
			p.References[i].Accepted = true
		}
	})
	h.first[dir] = h.plans[dir]
}

// from has the kinds from which fields are converted, but for those that show none.
var from = map[string]string{"customer": "javaLegacy", "key": "javaLegacy", "list": "javaLegacy", "text": "text", "spelled": "binaryText", "user": "goStruct"}

// decide makes the decision about a field.
func (h *history) decide(f *plan.Field) {
	kind := from[f.Plain()]
	if f.Plain() == "hash" {
		kind = h.order()
	}
	switch k, err := kinds.Parse(kind); {
	case err == nil && k.Stored() == f.Stored:
		f.Decision, f.Trust = plan.Convert(kind), f.Plain() == "hash" || kind == "text" || kind == "binaryText"
	case f.Plain() == "wrong" && h.listed:
		f.Decision = plan.List
	default:
		f.Decision = plan.Leave
	}
}

// order returns the order that is decided for values that show none.
func (h *history) order() string {
	if h.differ && h.r.IntN(2) == 0 {
		return "csharpLegacy"
	}
	return "javaLegacy"
}

func each(p *plan.Plan, f func(*plan.Field)) {
	for _, c := range p.Collections {
		for i := range c.Fields {
			f(&c.Fields[i])
		}
	}
}

// change changes the plan of a directory as a person does.
func (h *history) change(dir string, change func(*plan.Plan)) {
	p, err := plan.ReadFile(dir)
	h.try(err)
	change(p)
	h.plans[dir] = p.Text()
	h.writePlan(dir, p.Text())
}

func (h *history) writePlan(dir string, text []byte) {
	h.try(os.WriteFile(filepath.Join(dir, plan.PlanFile), text, 0o600))
}

// edit edits the plan of a directory, puts back one that is damaged, or makes another directory.
func (h *history) edit(dir string) {
	if p, err := plan.ReadFile(dir); err != nil || !bytes.Equal(p.Text(), h.plans[dir]) {
		h.tell("the plan of %s is put back", dir)
		h.writePlan(dir, h.plans[dir])
		return
	}
	was := h.plans[dir]
	switch h.r.IntN(4) {
	case 0:
		if len(h.dirs) > 4 {
			return
		}
		h.dirs = append(h.dirs, filepath.Join(filepath.Dir(dir), fmt.Sprint(len(h.dirs))))
		h.made(h.dirs[len(h.dirs)-1])
		return
	case 1:
		h.change(dir, func(p *plan.Plan) {
			i := slices.IndexFunc(p.Collections, func(c plan.Collection) bool { return c.Name == "orders" })
			if i < 0 {
				return
			}
			c := p.Collections[i]
			p.Collections = slices.DeleteFunc(p.Collections, func(o plan.Collection) bool { return o.Name == c.Name })
			parts := []string{""}
			if c.Filter == "" {
				parts = filters
			}
			for _, c.Filter = range parts {
				p.Collections = append(p.Collections, c)
			}
		})
		h.tell("the filters of %s are edited", dir)
		if h.run("plan", dir).Code != failure.ExitOK {
			h.plans[dir] = was
			h.writePlan(dir, was)
			return
		}
		h.change(dir, func(*plan.Plan) {})
	default:
		h.change(dir, func(p *plan.Plan) {
			c := p.Collections[h.r.IntN(len(p.Collections))]
			f := &c.Fields[h.r.IntN(len(c.Fields))]
			if _, converted := f.Decision.From(); converted && (f.Plain() != "hash" || !h.differ) {
				f.Decision, f.Trust = plan.Leave, false
			} else {
				h.decide(f)
			}
			h.tell("%s of %s in %s is edited: %s", f.Path, c.Name, dir, f.Decision)
		})
	}
	h.edited[dir] = true
}

// mend does what an apply has asked for that refused: it brings the plan up to date, or takes the edits back.
func (h *history) mend(dir, why string) {
	h.writePlan(dir, h.plans[dir])
	if !strings.Contains(why, "up to date") {
		h.tell("the edits of %s are taken back", dir)
		h.plans[dir] = h.first[dir]
	} else if h.run("plan", dir).Code == failure.ExitOK {
		h.change(dir, func(p *plan.Plan) {
			each(p, func(f *plan.Field) {
				if f.Decision == plan.Unknown {
					h.decide(f)
				}
			})
		})
	}
	h.writePlan(dir, h.plans[dir])
}

// migration returns the id of the migration of a directory, or "" without a plan.
func (h *history) migration(dir string) string {
	p, err := plan.ReadFile(dir)
	if err != nil {
		return ""
	}
	return p.Migration
}

// names returns the paths of the files of a directory, without its lock.
func (h *history) names(dir string) (paths []string) {
	entries, err := os.ReadDir(dir)
	h.try(err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// damage damages a file of a directory, puts another one in its place, or moves undo logs.
func (h *history) damage(dir string) {
	paths := h.names(dir)
	if len(paths) == 0 {
		return
	}
	path := paths[h.r.IntN(len(paths))]
	if strings.HasSuffix(path, plan.PlanFile) && h.r.IntN(2) == 0 { // other files more often
		path = paths[h.r.IntN(len(paths))]
	}
	b, err := os.ReadFile(path)
	h.try(err)
	was, to := h.aged[path], bytes.Clone(b)
	h.aged[path] = b
	if filepath.Base(path) == plan.PlanFile {
		h.edited[dir] = true
	}
	switch k := h.r.IntN(7); {
	case k == 6:
		h.replace(dir)
		return
	case k == 0:
		h.tell("%s is removed", path)
		h.try(os.Remove(path))
		return
	case k == 1 && len(b) > 0:
		to = to[:h.r.IntN(len(to))]
	case k == 2 && was != nil:
		to = was
	case k == 3:
		h.move(h.dirs[h.r.IntN(len(h.dirs))], dir)
		return
	case len(b) > 0:
		to[h.r.IntN(len(to))] ^= 1 << h.r.IntN(8)
	}
	h.tell("%s is damaged: it has %d bytes, and had %d", path, len(to), len(b))
	h.try(os.WriteFile(path, to, 0o600))
}

// replace puts all files of a directory in place that it had before.
func (h *history) replace(dir string) {
	was, now := h.whole[dir], make(map[string][]byte)
	for _, path := range h.names(dir) {
		b, err := os.ReadFile(path)
		h.try(err)
		now[path] = b
	}
	if h.whole[dir] = now; was == nil {
		return
	}
	h.tell("all files of %s are as they were: %d, and %d before", dir, len(was), len(now))
	for path := range now {
		h.try(os.Remove(path))
	}
	for path, b := range was {
		h.try(os.WriteFile(path, b, 0o600))
	}
	h.edited[dir] = true
}

// move moves the undo logs of one directory to another one, which may be of another migration.
func (h *history) move(from, to string) {
	h.tell("the undo logs of %s are moved to %s", from, to)
	for _, path := range h.names(from) {
		if strings.HasSuffix(path, undolog.Ext) {
			h.try(os.Rename(path, filepath.Join(to, filepath.Base(path))))
		}
	}
}

// skipped returns the values that the lists of a directory have, each by collection, _id and path.
func (h *history) skipped(dir string) map[string]bool {
	all := make(map[string]bool)
	lists, err := filepath.Glob(filepath.Join(dir, "*.skipped.jsonl"))
	h.try(err)
	for _, path := range lists {
		b, err := os.ReadFile(path)
		h.try(err)
		for line := range bytes.Lines(b) {
			var l struct {
				Collection string
				ID         int32 `bson:"_id"`
				Path       string
			}
			if bson.UnmarshalExtJSON(line, true, &l) != nil { // a damaged list of a collection that is not in the plan any more
				continue
			}
			all[fmt.Sprint(strings.TrimPrefix(l.Collection, h.DB.Name()+"."), " ", l.ID, " ", l.Path)] = true
		}
	}
	return all
}

// runs returns the runs that the record has.
func (h *history) runs() []*record.Run {
	runs, err := record.Runs(context.Background(), h.DB)
	h.try(err)
	return runs
}

// lost returns the names of the undo logs that a directory lacks, or that are not as the record says, of its migration.
func (h *history) lost(dir string) (names []string) {
	p, err := plan.ReadFile(dir)
	if err != nil {
		return nil
	}
	for _, r := range h.runs() {
		if r.Migration != p.Migration || !r.Stands() || r.Log.Size == 0 {
			continue
		}
		name := r.By.Token + undolog.Ext
		b, _ := os.ReadFile(filepath.Join(dir, name))
		if int64(len(b)) < r.Log.Size || int64(crc32.Checksum(b[:r.Log.Size], crc32.MakeTable(crc32.Castagnoli))) != r.Log.Sum {
			names = append(names, name)
		}
	}
	return names
}

// kept is a value that an undo log restores.
type kept struct {
	collection string
	id         int32
	v          *value
}

// standing calls f for each value of the undo logs of a directory that neither the record nor they themselves call undone, and that
// the collections have, with what it is now and what the log says that it has become.
func (h *history) standing(dir string, f func(k kept, path string, is, fresh bson.RawValue)) {
	logs, _, err := undolog.In(dir)
	h.try(err)
	defer undolog.Logs(logs).Close()
	runs := h.runs()
	docs := make(map[string]map[int32]bson.Raw)
	for name := range fields {
		docs[name] = make(map[int32]bson.Raw)
		for _, doc := range h.docs(h.DB.Collection(name)) {
			docs[name][doc.Lookup("_id").Int32()] = doc
		}
	}
	for _, u := range logs {
		if u.Undone != nil || slices.ContainsFunc(runs, func(r *record.Run) bool { return r.By.Token == u.Run && r.Restored() }) {
			continue
		}
		name := u.Task.Collection
		_ = undolog.Of(u).Each(func(e undolog.Entry) error { // a damaged log has nothing for certain
			id, ok := e.ID.Int32OK()
			d := h.truth[name][id]
			if !ok || d == nil {
				return nil
			}
			for _, ch := range e.Changes {
				for _, v := range d.values {
					if v.field == strings.TrimRight(ch.Path, ".0123456789") && v.old.Equal(ch.Old.Raw()) {
						f(kept{name, id, v}, ch.Path, lookup(docs[name][id], v.path), ch.New.Raw())
					}
				}
			}
			return nil
		})
	}
}

// logged returns the values that an undo of a directory must restore.
func (h *history) logged(dir string) (there []kept) {
	h.standing(dir, func(k kept, _ string, is, fresh bson.RawValue) {
		if is.Equal(fresh) {
			there = append(there, k)
		}
	})
	return there
}

// misread returns the values of the undo logs of a directory that are converted from another order than all logs say.
func (h *history) misread(dir string) (found []string) {
	right := make(map[*value]bool)
	for _, k := range h.logged(dir) {
		right[k.v] = true
	}
	h.standing(dir, func(k kept, path string, is, _ bson.RawValue) {
		if !right[k.v] && path == k.v.path && !is.Equal(k.v.old) {
			found = append(found, fmt.Sprint(k.collection, " ", k.id, " ", path))
		}
	})
	return found
}

// restored fails the test unless the values are as services have written them.
func (h *history) restored(there []kept) {
	h.Helper()
	docs := make(map[string][]bson.Raw)
	for name := range fields {
		docs[name] = h.docs(h.DB.Collection(name))
	}
	for _, k := range there {
		for _, doc := range docs[k.collection] {
			if is := lookup(doc, k.v.path); doc.Lookup("_id").Int32() == k.id && !is.Equal(k.v.old) {
				h.fail("%s of %s %d is in a log, and was not restored: %v", k.v.path, k.collection, k.id, is)
			}
		}
	}
}

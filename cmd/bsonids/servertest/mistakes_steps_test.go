package servertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/uuidrep"
)

// step is one thing that the user does.
func (w *world) step() {
	switch k := w.r.IntN(20); {
	case k < 10:
		w.observe([]ran{w.convert(w.wish(), w.fault())})
	case k < 12:
		w.atOnce()
	case k < 14:
		w.damage()
	case k < 16:
		w.undo()
	case k < 18:
		w.retry()
	default:
		w.verify()
	}
}

// mistake counts a mistake.
func (w *world) mistake(name string) string {
	w.sum.count(w.sum.kinds, name)
	return name
}

// wish is the next conversion that the user asks for.
func (w *world) wish() wish {
	o := w.plan
	if w.r.IntN(4) == 0 {
		o.from = legacy[w.r.IntN(3)]
		if o.from != w.shapes[0].order {
			w.mistake("wrong --from")
		}
	}
	if w.r.IntN(10) == 0 {
		o.to = append([]uuidrep.Representation{uuidrep.Standard}, legacy...)[w.r.IntN(4)]
	}
	if o.to == o.from && w.r.IntN(4) > 0 {
		o.to = uuidrep.Standard
	}
	switch field := w.shapes[w.r.IntN(len(w.shapes))].name; w.r.IntN(11) {
	case 0:
		o.fields = []string{field}
	case 1:
		o.fields = []string{w.mistake("wrong --field")}
	case 2:
		o.trust = []string{field}
		w.mistake("--trust")
	case 3:
		o.extra = []string{"--take-over"}
		w.mistake("--take-over")
	case 4:
		o.extra = []string{"--decide-anew"}
	case 5:
		o.part = []string{"1/2", "2/2"}[w.r.IntN(2)]
	}
	switch w.r.IntN(8) {
	case 0:
		o.files = w.newFiles()
		w.mistake("other files")
	case 1:
		other := w.newFiles()
		o.files = &fileSet{w.plan.files.state, other.undo, w.plan.files.skip}
		w.mistake("another undo log")
	case 2:
		other := w.newFiles()
		o.files = &fileSet{other.state, w.plan.files.undo, other.skip}
		w.mistake("another state file")
	case 3:
		o.files = &fileSet{"", "", w.newFiles().skip}
	}
	return o
}

func (o wish) args(w *world) []string {
	args := []string{"convert", "--db", w.s.Database(), "--collection", w.coll.Name(), "--from", o.from.String(), "--to", o.to.String(), "--write",
		"--output", "json", "--examples", "0", "--batch", fmt.Sprint(1 + w.r.IntN(15)), "--workers", fmt.Sprint(1 + w.r.IntN(2)), "--batch-timeout", "1s",
		"--skip-list", o.files.skip}
	if o.files.state != "" {
		args = append(args, "--state", o.files.state)
	}
	if o.into != "" {
		args = append(args, "--into", o.into)
	} else if o.files.undo != "" {
		args = append(args, "--undo-log", o.files.undo)
	}
	for _, f := range o.fields {
		args = append(args, "--field", f)
	}
	for _, f := range o.trust {
		args = append(args, "--trust", f)
	}
	if o.retry != "" {
		args = append(args, "--retry", o.retry)
	}
	if o.part != "" {
		args = append(args, "--part", o.part)
	}
	return append(args, o.extra...)
}

func (w *world) undoArgs(log string) []string {
	return []string{"undo", log, "--write", "--batch", "10", "--batch-timeout", "1s", "--output", "json"}
}

// damage changes a file as a disk or a user does.
func (w *world) damage() {
	files, err := filepath.Glob(filepath.Join(w.dir, "*.*"))
	if err != nil {
		w.t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, ".lock") })
	if len(files) == 0 {
		return
	}
	path := files[w.r.IntN(len(files))]
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	name, b := damaged(w.r, b, w.old[path])
	w.old[path] = b
	w.note("%s %s", w.mistake(name), path)
	w.damaged[path] = true
	if b == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func damaged(r *rand.Rand, b, old []byte) (name string, to []byte) {
	b = slices.Clone(b)
	lines := slices.Collect(bytes.Lines(b))
	switch k := r.IntN(7); {
	case k == 0 || len(b) == 0:
		return "file deleted", nil
	case k == 1:
		return "file cut", b[:r.IntN(len(b))]
	case k == 2 && len(old) > 0:
		return "older file", old
	case k == 3:
		i := r.IntN(len(lines))
		return "line deleted", bytes.Join(slices.Delete(lines, i, i+1), nil)
	case k == 4:
		i := r.IntN(len(lines))
		return "line doubled", bytes.Join(slices.Insert(lines, i, lines[i]), nil)
	default:
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return "bit flipped", b
	}
}

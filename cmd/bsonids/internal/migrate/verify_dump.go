package migrate

import (
	"context"
	"io"
	"os"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// DumpProof is the result of the comparison of a dump with its conversion.
type DumpProof struct {
	Path string `json:"path"`
	Out  string `json:"out"`
	offline.Verified
}

// VerifyDump proves that a file has the documents of the dump of a plan, each converted, and no others. One of the paths may be
// "-" for stdin; both are empty for those that the plan and its directory name.
func VerifyDump(ctx context.Context, m session.Messages, state *plan.State, path, converted string, stdin io.Reader) (p Proof, err error) {
	if path == "" {
		last, err := state.Converted()
		if err != nil {
			return p, files.FileError(err)
		}
		if last == nil {
			return p, failure.Usagef("%s: bsonids apply --out has not converted the dump", state.Dir())
		}
		if path, converted = state.Plan.Dump.Path, last.Out; path == "-" || converted == "-" {
			return p, failure.Usagef("the dump or its conversion was a pipe: give bsonids verify %s both paths", state.Dir())
		}
	}
	if path == "-" && converted == "-" {
		return p, failure.Usagef("only one of the dump and its conversion can be standard input")
	}
	d, err := OpenDump(state.Dir(), state.Plan)
	if err != nil {
		return p, err
	}
	in, err := d.Input(path, stdin)
	if err != nil {
		return p, err
	}
	out, err := d.Input(converted, stdin)
	if err != nil {
		return p, err
	}
	job, done := d.Job(m, in, os.TempDir(), "comparing")
	v, err := offline.Verify(ctx, job, out)
	done()
	if err != nil {
		return p, err
	}
	p = Proof{Database: state.Plan.Database, Dump: &DumpProof{Path: path, Out: converted, Verified: v}, Proven: v.Holds(), Steps: []StepProof{}}
	for _, st := range d.Steps {
		c := d.Of(v.Result, st)
		proof := StepProof{Step: Fresh(st).Step, Basis: RestsOnSource, Proven: c.Wrong+c.Missing+c.Extra == 0}
		proof.Status = Done
		proof.Result = convert.Verified{Read: c.Equal + c.Wrong + c.Missing, New: c.Values, Left: c.Left, Proven: c.Equal, Wrong: c.Wrong, Missing: c.Missing, Extra: c.Extra}
		p.Steps = append(p.Steps, proof)
	}
	return p, nil
}

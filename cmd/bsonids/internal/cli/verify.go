package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

type verifyOptions struct {
	*console
	conversionFlags
	dumpFlags
	trust          []string
	output         *enum
	undoLog, state string
	stateDir       string
	allowChanged   bool
	load           loadFlags
}

func newVerifyCommand(c *console) *cobra.Command {
	o := &verifyOptions{console: c}
	cmd := &cobra.Command{
		Use:   "verify [PLAN]",
		Short: "Prove that a conversion is complete and lost nothing",
		Long: `verify reads the whole collection and proves that no value is left to convert.
The flags determine what it compares, and verify prints it:

  --undo-log  every converted value is the conversion of the value in the log
  --into      the new collection has the converted documents of the old one,
              byte for byte, and no others
  neither     only the subtypes: no old value is left. This does not prove that
              the new values are correct

--state is the state file of the conversion. The proof fails if the conversion is
not finished. Values that it left unchanged on purpose are counted separately.

With --dump, verify compares the dump of --out with the conversion of the dump,
document by document. Give the flags of the conversion.

With a plan and --state-dir, verify proves all conversions of bsonids apply, by
the files in the directory.

verify changes nothing. The exit code is 0 if the proof holds and 3 if it does
not. The proof fails if other programs changed or deleted documents since the
conversion, unless --allow-changed is given.`,
		Example: `  bsonids verify --db shop --collection orders --from javaLegacy --to standard --undo-log orders.undo
  bsonids verify --db shop --collection users --from csharpLegacy --to standard --into users_standard
  bsonids verify --dump dump/ --out dump-standard/ --from javaLegacy --to standard
  bsonids verify plan.yaml --state-dir shop.state`,
		Args: o.arguments,
		RunE: runE(o.run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.conversionFlags.add(cmd)
	c.completeNames(cmd, func() []string { return []string{o.database} })
	f := cmd.Flags()
	f.StringVar(&o.into, "into", "", "new collection of the conversion")
	f.StringVar(&o.query, "query", "", "filter of the conversion in extended JSON; only the documents that match it are read")
	f.StringVar(&o.undoLog, "undo-log", "", "undo log of the conversion")
	f.StringVar(&o.state, "state", "", "state file of the conversion")
	f.StringVar(&o.stateDir, "state-dir", "", "state directory of the plan")
	f.BoolVar(&o.allowChanged, "allow-changed", false, "accept documents that other programs changed or deleted since")
	o.load.add(cmd, false)
	cmd.MarkFlagsMutuallyExclusive("into", "undo-log")
	cmd.MarkFlagsMutuallyExclusive("into", "query")
	o.dumpFlags.add(cmd, []string{"db", "collection", "from", "to", "field", "output"}, []string{"out", "decision", "trust"})
	f.StringVar(&o.decisionFile, "decision", "", "with --dump: file with the decision of the conversion, if it had one")
	f.StringSliceVar(&o.trust, "trust", nil, "with --dump: the --trust flags of the conversion")
	o.optional(cmd, "db", "collection")
	return cmd
}

func (o *verifyOptions) run(ctx context.Context, args []string) error {
	if err := o.load.check(); err != nil {
		return err
	}
	if len(args) == 1 {
		return o.plan(ctx, args[0])
	}
	if err := o.dumpFlags.check(); err != nil {
		return err
	}
	if o.dump != "" {
		return o.verifyDump(ctx)
	}
	var client *mongo.Client
	p, err := o.prove(ctx, func() (_ *mongo.Client, err error) {
		client, err = o.connect(ctx, server.Write)
		o.load.begin(o.console)
		return client, err
	})
	if client != nil {
		defer server.Disconnect(client)
	}
	if err != nil {
		return err
	}
	if o.output.value == formatJSON {
		err = report.ProofJSON(o.out, p.about, p.result, p.basis, p.proven)
	} else {
		report.Proof(o.out, p.about, p.result, p.basis, p.proven)
	}
	if err == nil && !p.proven {
		err = failure.ErrIncomplete
	}
	return err
}

// proof is the result of a verification.
type proof struct {
	about  report.Conversion
	result convert.Verified
	basis  report.Basis
	proven bool
}

// prove verifies a conversion. It calls connect after it has read the files.
func (o *verifyOptions) prove(ctx context.Context, connect func() (*mongo.Client, error)) (p proof, err error) {
	conv, id, err := o.conversion()
	if err != nil {
		return p, err
	}
	o.about(o.database + "." + o.collection)
	query, err := o.filter()
	if err != nil {
		return p, err
	}
	id.Query = o.query
	if conv.SameSubtype() && o.undoLog == "" && o.into == "" {
		return p, failure.Usagef("from %s to %s, the old and the new values have subtype 3: --undo-log is required", conv.From.Name, conv.To.Name)
	}
	var log *convert.UndoReader
	if o.undoLog != "" {
		if log, err = convert.ReadUndoLog(o.undoLog); err != nil {
			return p, failure.Usagef("%v", nameFlag(err))
		}
		defer func() { _ = log.Close() }()
		if m := log.Undone(); m != nil {
			return p, failure.Usagef("--undo-log %s: %s; there is no conversion to verify", o.undoLog, m)
		}
		id.Part = log.Identity.Part
		if err := isOf("--undo-log "+o.undoLog, log.Identity, id); err != nil {
			return p, err
		}
	}
	var state *convert.State
	if o.state != "" {
		s, err := convert.ReadState(o.state)
		if err != nil {
			return p, failure.Usagef("%v", nameFlag(err))
		}
		if log == nil && o.into == "" {
			id.Part = s.Identity.Part
		}
		if err := isOf("--state "+o.state, s.Identity, id); err != nil {
			return p, err
		}
		if s.Decision != nil {
			conv.Judge = s.Decision.Judge(conv.From.Order)
		}
		state = &s
	}
	part, err := convert.ParsePart(id.Part)
	if err != nil {
		return p, failure.Usagef("the part in the files is invalid: %v", err)
	}
	client, err := connect()
	if err != nil {
		return p, err
	}
	db := client.Database(o.database)
	coll := db.Collection(o.collection)
	var total int64
	var spec *mongo.CollectionSpecification
	var expected expectedLog
	if state != nil {
		expected = expectedBy(*state)
	}
	err = o.load.patience.Do(ctx, func() error {
		var err error
		spec, err = server.FindCollection(ctx, coll)
		if err == nil && o.into != "" {
			_, err = server.FindCollection(ctx, db.Collection(o.into))
		}
		if err != nil {
			return err
		}
		if o.into != "" && state == nil {
			// The copy has the values that the decision left unchanged.
			if conv.Judge, err = o.recordedJudge(ctx, db, id, spec); err != nil {
				return err
			}
		}
		if log != nil {
			if expected, err = o.covered(ctx, db, log, state); err != nil {
				return err
			}
		}
		if err := matching(ctx, coll, conv); err != nil {
			return err
		}
		total, err = coll.EstimatedDocumentCount(ctx)
		return err
	})
	if err != nil {
		return p, err
	}
	bar := o.progress(total, "verifying", o.database+"."+o.collection)
	var v convert.Verified
	basis := report.RestsOnSubtypes
	if o.into != "" {
		basis = report.RestsOnSource
		v, err = convert.VerifyInto(ctx, coll, db.Collection(o.into), conv, o.load.patience, bar.Add)
	} else {
		if log != nil {
			basis = report.RestsOnUndoLog
		}
		of := convert.Verification{Conversion: conv, Part: part, Query: query, UUID: spec.UUID, Undo: log, Patience: o.load.patience, Progress: bar.Add}
		if state != nil {
			of.SkipList = state.SkipList
		}
		v, err = of.Verify(ctx, coll)
	}
	bar.Done()
	if err != nil {
		return p, err
	}
	if o.into == "" && (log == nil || v.Gone > 0) && expected.replaced(spec) {
		return p, replacedError(o.database + "." + o.collection)
	}
	if query != nil && v.Read == 0 && v.Proven == 0 {
		return p, failure.Usagef("--query: no document of %s.%s matches", o.database, o.collection)
	}
	if state != nil {
		v.Finished = &state.Done
	}
	proven := v.Holds(o.allowChanged)
	version, _ := build()
	// A user who may read everything may lack the privilege to write the record. The proof holds
	// without it.
	_ = record.MarkVerified(ctx, db, record.Run{Collection: id.Collection, From: id.From, To: id.To, Into: id.Into, Fields: id.Fields, Query: id.Query}, proven, version)
	return proof{report.Conversion{Identity: id, From: conv.From, To: conv.To}, v, basis, proven}, nil
}

// covered returns what is known of the undo log, and an error if it lacks entries that were written.
// Without a state file, the one that the log names is read.
func (o *verifyOptions) covered(ctx context.Context, db *mongo.Database, log *convert.UndoReader, state *convert.State) (expectedLog, error) {
	w := expectedLog{collection: log.Identity.Collection, id: log.ID}
	if state == nil {
		if s, err := convert.ReadState(log.State); err == nil && s.UndoID == log.ID {
			state = &s
		}
	}
	if state != nil {
		w = expectedBy(*state)
	}
	w, err := w.inRecord(ctx, db)
	if err == nil {
		if err = log.Covers(w.id, w.size); err != nil {
			err = incompleteLogs(nameless(err), "nothing is proven", err)
		}
	}
	return w, err
}

// recordedJudge returns a Judge for the decision in the record, or nil if there is none.
func (o *verifyOptions) recordedJudge(ctx context.Context, db *mongo.Database, id convert.Identity, spec *mongo.CollectionSpecification) (*decide.Judge, error) {
	var d decide.Decision
	found, err := record.Decision(ctx, db, record.Run{Collection: id.Collection, UUID: spec.UUID, From: id.From, To: id.To, Fields: id.Fields, Query: id.Query}, &d)
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		return nil, nil
	}
	if err != nil || !found {
		return nil, err
	}
	return d.Judge(o.from.Order), nil
}

// isOf returns a usage error if a file does not belong to the conversion that the flags describe.
func isOf(file string, got, want convert.Identity) error {
	switch {
	case got.Database != want.Database || got.Collection != want.Collection || got.From != want.From || got.To != want.To || got.Into != want.Into:
		return failure.Usagef("%s belongs to another conversion: %s.%s from %s to %s", file, got.Database, got.Collection, got.From, got.To)
	case !slices.Equal(got.Fields, want.Fields) && len(got.Fields) == 0:
		return failure.Usagef("%s belongs to a conversion of all fields; omit --field", file)
	case !slices.Equal(got.Fields, want.Fields):
		return failure.Usagef("%s belongs to a conversion of some fields; give --field %s", file, strings.Join(got.Fields, ","))
	case got.Query != want.Query && got.Query == "":
		return failure.Usagef("%s belongs to a conversion of all documents; omit --query", file)
	case got.Query != want.Query:
		return failure.Usagef("%s belongs to a conversion with a filter; give --query %s", file, terminal.Quote(got.Query))
	case got.Part != want.Part:
		return failure.Usagef("%s belongs to part %q, the other file to part %q", file, got.Part, want.Part)
	}
	return nil
}

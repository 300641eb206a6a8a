package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/verify"
)

type verifyOptions struct {
	*console
	conversionFlags
	flags  *pflag.FlagSet
	output *enum
	load   loadFlags
	dir    string   // of the migration, if there is one
	paths  []string // of a dump and its conversion
	work   verify.Options
}

func newVerifyCommand(c *console, run func(*verifyOptions, context.Context) error) *cobra.Command {
	o := &verifyOptions{console: c}
	cmd := &cobra.Command{
		Use:   "verify [DIR [DUMP CONVERTED]]",
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

With the directory of a migration, verify proves all its conversions, by the files
in it. With that of a dump, it compares the dump with its conversion, document by
document. If one of them was a pipe, give the paths of both; one may be - for
standard input.

verify changes nothing. The exit code is 0 if the proof holds and 3 if it does
not. The proof fails if other programs changed or deleted documents since the
conversion, unless --allow-changed is given.`,
		Example: `  bsonids verify --db shop --collection orders --from javaLegacy --to standard --undo-log orders.undo
  bsonids verify --db shop --collection users --from csharpLegacy --to standard --into users_standard
  bsonids verify shop.d
  bsonids verify dump.d shop.archive shop-standard.archive`,
		Args: o.arguments,
		RunE: runWith(o, run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.conversionFlags.add(cmd)
	c.completeNames(cmd, func() []string { return []string{o.database} })
	f := cmd.Flags()
	f.StringVar(&o.into, "into", "", "new collection of the conversion")
	f.StringVar(&o.query, "query", "", "filter of the conversion in extended JSON; only the documents that match it are read")
	f.StringVar(&o.work.UndoLog, "undo-log", "", "undo log of the conversion")
	f.StringVar(&o.work.State, "state", "", "state file of the conversion")
	f.BoolVar(&o.work.AllowChanged, "allow-changed", false, "accept documents that other programs changed or deleted since")
	o.load.add(cmd, false)
	cmd.MarkFlagsMutuallyExclusive("into", "undo-log")
	cmd.MarkFlagsMutuallyExclusive("into", "query")
	o.flags = f
	_ = errors.Join(cmd.MarkFlagRequired("db"), cmd.MarkFlagRequired("collection")) // the flags exist
	return cmd
}

func (o *verifyOptions) complete(args []string) (err error) {
	if err := o.load.check(); err != nil {
		return err
	}
	if len(args) > 0 {
		o.dir, o.paths = args[0], args[1:]
		return nil
	}
	o.work.Described, err = migration.Describe(o.identity())
	return err
}

func (o *verifyOptions) run(ctx context.Context) error {
	if o.dir != "" {
		return o.plan(ctx)
	}
	f, err := verify.Open(o.work)
	if err != nil {
		return err
	}
	defer f.Close()
	s, end, err := o.session(ctx, server.Write, o.load, migration.Recording{})
	if err != nil {
		return err
	}
	defer end()
	p, err := f.Prove(ctx, s)
	if err != nil {
		return err
	}
	if o.output.value == formatJSON {
		err = report.ProofJSON(o.out, p.About, p.Result, p.Basis, p.Proven)
	} else {
		report.Proof(o.out, p.About, p.Result, p.Basis, p.Proven)
	}
	if err == nil && !p.Proven {
		err = failure.ErrIncomplete
	}
	return err
}

// arguments checks the arguments of verify: none, or the directory of a migration, which describes
// the conversions instead of the flags.
func (o *verifyOptions) arguments(cmd *cobra.Command, args []string) error {
	if len(args) == 2 || len(args) > 3 {
		return errors.New("give the directory of a migration, or it and the paths of a dump and its conversion")
	}
	if len(args) == 0 {
		return nil
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"allow-changed", "retry-for", "output", "uri", "uri-file", "quiet", "log-format"}, f.Name) {
			err = fmt.Errorf("--%s cannot be used with a directory, whose plan describes the conversions", f.Name)
		}
	})
	// Without them, the flags that describe a conversion are not required.
	for _, name := range []string{"db", "collection", "from"} {
		_ = cmd.Flags().SetAnnotation(name, cobra.BashCompOneRequiredFlag, []string{"false"}) // the flag exists
	}
	return err
}

// plan verifies all conversions of a plan.
func (o *verifyOptions) plan(ctx context.Context) error {
	state, err := plan.ReadState(o.dir)
	switch {
	case err != nil:
		return failure.Usagef("%v", err)
	case state.Plan.Dump != nil:
		return o.verifyConverted(ctx, state)
	case len(o.paths) > 0:
		return failure.Usagef("%s is not the plan of a dump: do not give paths", o.dir)
	}
	s, end, err := o.session(ctx, server.Write, o.load, migration.Recording{})
	if err != nil {
		return err
	}
	defer end()
	proofs, proven, err := verify.Plan(ctx, s, state, o.work.AllowChanged)
	if err != nil {
		return err
	}
	if o.output.value == formatJSON {
		err = report.PlanProofJSON(o.out, state.Plan.Database, nil, proofs, proven)
	} else {
		report.PlanProof(o.out, state.Plan.Database, nil, proofs, proven)
	}
	if err == nil && !proven {
		err = failure.ErrIncomplete
	}
	return err
}

// verifyConverted proves the conversion of a dump.
func (o *verifyOptions) verifyConverted(ctx context.Context, state *plan.State) error {
	if err := mayBeOfDump(o.flags); err != nil {
		return err
	}
	work := verify.DumpOptions{Dir: o.dir, Stdin: os.Stdin}
	if len(o.paths) == 2 {
		work.In, work.Out = o.paths[0], o.paths[1]
	}
	p, proofs, err := verify.Dump(ctx, o.console, state, work)
	if err != nil {
		return err
	}
	if o.output.value == formatJSON {
		err = report.PlanProofJSON(o.out, state.Plan.Database, &p, proofs, p.Holds())
	} else {
		report.PlanProof(o.out, state.Plan.Database, &p, proofs, p.Holds())
	}
	if err == nil && !p.Holds() {
		err = failure.ErrIncomplete
	}
	return err
}

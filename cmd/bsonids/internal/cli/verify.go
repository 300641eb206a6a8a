package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type verifyVerb struct {
	*console
	allowChanged bool
}

func (o *verifyVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify DIR [DUMP CONVERTED]",
		Short: "Prove that the conversions of a plan are complete and lost nothing",
		Long: `verify reads the collections of the migration in DIR and proves that no value is left
to convert. For each conversion, it prints what it compares:

  undo log  every converted value is the conversion of the value in the log
  source    the new collection has the converted documents of the old one,
            byte for byte, and no others

After a cutover, the source is the old collection that was put away. Until the
release, nothing may differ. Then services write to the new collection alone: documents
that differ count as changed, inserted or deleted since.

The proof fails if a conversion is not finished; verify then says why, such as who runs
apply since when. Values that it left unchanged on purpose are counted separately.

With the plan of a dump, verify compares the dump with its conversion, document by
document. If one of them was a pipe, give the paths of both; one may be - for
standard input.

verify changes nothing. The exit code is 0 if the proof holds and nothing is left, and
3 otherwise. The proof fails if other programs changed or deleted documents since the
conversion, unless --allow-changed is given.`,
		Example: `  bsonids verify shop.d
  bsonids verify dump.d shop.archive shop-standard.archive`,
		Args: arguments(1, 3),
	}
	o.serverFlags(cmd)
	o.outputFlag(cmd, formatJSON)
	o.retryFlag(cmd)
	cmd.Flags().BoolVar(&o.allowChanged, "allow-changed", false, "accept documents that other programs changed or deleted since")
	return cmd
}

func (o *verifyVerb) run(ctx context.Context) error {
	dir, paths := o.args[0], o.args[1:] // of a dump and its conversion
	state, err := plan.Look(dir)
	var p migrate.Proof
	switch {
	case err != nil:
		return failure.Usagef("%v", err)
	case state.Plan.Dump != nil:
		if err := o.onlyOf("the plan of a dump", "output"); err != nil {
			return err
		}
		paths = append(paths, "", "")
		p, err = migrate.VerifyDump(ctx, o.console, state, paths[0], paths[1], os.Stdin)
	case len(paths) > 0:
		return failure.Usagef("%s is not the plan of a dump: do not give paths", dir)
	default:
		s, failed := o.session(ctx, server.Write)
		if failed != nil {
			return failed
		}
		p, err = migrate.Verify(ctx, s, state, o.allowChanged)
	}
	if err != nil {
		return err
	}
	return o.print(report.Proof(p), p.Proven && p.Left() == 0)
}

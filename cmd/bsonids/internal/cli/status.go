package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type statusOptions struct {
	*console
	output             *enum
	database, stateDir string
}

func newStatusCommand(c *console) *cobra.Command {
	o := &statusOptions{console: c}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how far conversions have come",
		Long: `status shows the conversions of a database: how many documents they have read,
changed and skipped, how fast they are, and how long they still take.

It reads the record that conversions write to the database every two seconds,
and therefore shows runs on other machines, too. With --state-dir, it shows the
conversions of a plan, also those that have not begun, and reads the state files.
It needs no server then, but shows more with one.

It also shows the cutovers that have not ended, and those whose collections are
fenced until bsonids release, with the command that goes on.

status changes nothing.`,
		Example: `  bsonids status --db shop
  bsonids status --state-dir shop.state --output json`,
		Args: cobra.NoArgs,
		RunE: runE(o.run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	cmd.Flags().StringVar(&o.database, "db", "", "database; that of the plan with --state-dir")
	c.completeNames(cmd, func() []string { return []string{o.database} })
	cmd.Flags().StringVar(&o.stateDir, "state-dir", "", "state directory of a plan")
	cmd.MarkFlagsOneRequired("db", "state-dir")
	cmd.MarkFlagsMutuallyExclusive("db", "state-dir")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, _ []string) error {
	var state *plan.State
	if o.stateDir != "" {
		var err error
		if state, err = plan.ReadState(o.stateDir); err != nil {
			return failure.Usagef("--state-dir: %v", err)
		}
		o.database = state.Plan.Database
	}
	if !validDatabase(o.database) {
		return failure.Usagef("--db %q is not a valid database name", o.database)
	}
	var steps []report.StepStatusOf
	var cutovers []report.CutoverStatus
	at := time.Now()
	if state != nil {
		var err error
		if steps, err = stepsOf(state); err != nil {
			return err
		}
	}
	if state == nil || o.uriFile != "" || o.connectionString() != "" {
		now, err := o.recorded(ctx, &steps, &cutovers, state != nil)
		switch {
		case err != nil && (state == nil || errors.Is(err, context.Canceled)):
			return err
		case err != nil:
			o.warn("the record of conversions cannot be read, only the state directory: %s", failure.Explain(err, o.connectionString()).Text)
		default:
			at = now
		}
	}
	s := report.NewStatus(o.database, at, steps)
	s.Cutovers = cutovers
	if o.output.value == formatJSON {
		return report.StatusJSON(o.out, s)
	}
	report.Status(o.out, s)
	return nil
}

// stepsOf returns the conversions of a plan by their state files.
func stepsOf(state *plan.State) ([]report.StepStatusOf, error) {
	var out []report.StepStatusOf
	for _, st := range state.Plan.Steps() {
		a, err := fromFiles(state, st)
		if err != nil {
			return nil, err
		}
		s := report.StepStatusOf{Collection: a.Collection, From: a.From, To: a.To, Into: a.Into, Status: a.Status, Changed: a.Documents, Skipped: a.Skipped}
		if f, err := convert.ReadState(state.Path(st.State())); err == nil {
			s.Conversion = f.Conversion
		}
		out = append(out, s)
	}
	return out, nil
}

// recorded adds what the record says to the steps. If only is not set, it adds the conversions that
// are not among them, too. It returns the time of the server.
func (o *statusOptions) recorded(ctx context.Context, steps *[]report.StepStatusOf, cutovers *[]report.CutoverStatus, only bool) (time.Time, error) {
	client, err := o.connect(ctx, server.Read)
	if err != nil {
		return time.Time{}, err
	}
	defer server.Disconnect(client)
	db := client.Database(o.database)
	plans, err := record.Plans(ctx, db)
	if err != nil {
		return time.Time{}, err
	}
	runs, err := record.Runs(ctx, db)
	if err != nil {
		return time.Time{}, err
	}
	now, err := record.Now(ctx, db)
	if err != nil {
		return time.Time{}, err
	}
	open, err := record.Cutovers(ctx, db, true)
	if err != nil {
		return time.Time{}, err
	}
	for _, c := range open {
		*cutovers = append(*cutovers, o.cutoverStatus(c))
	}
	if !only {
		*steps = conversions(plans, runs)
	}
	documents := make(map[string]int64)
	for _, p := range plans {
		for _, st := range p.Steps {
			documents[st.Conversion] = st.Documents
		}
	}
	for i := range *steps {
		s := &(*steps)[i]
		s.Documents = documents[s.Conversion]
		for _, r := range runs {
			if r.Conversion == s.Conversion && s.Conversion != "" {
				s.Add(r, now)
			}
		}
	}
	return now, nil
}

// cutoverStatus returns how far a cutover has come.
func (o *statusOptions) cutoverStatus(c *record.Cutover) report.CutoverStatus {
	waits := c.State == record.Switched || c.State == record.Releasing
	f := switchFlags{console: o.console, database: o.database}
	next := f.command("cutover", c.Names())
	switch {
	case waits:
		next = f.command("release", c.Names())
	case c.State == record.Undoing:
		next = f.command("undo", c.Names())
	case c.State == record.RollingBack:
		next = f.command("cutover", c.Names(), "--roll-back")
	}
	return report.CutoverStatus{Collections: c.Names(), State: c.State, Waits: waits, By: fmt.Sprintf("%s@%s, process %d", c.By.User, c.By.Host, c.By.PID),
		Begun: c.Begun, Updated: c.Updated, Next: next}
}

// conversions returns the conversions in the record: those of the plans in the order of the work,
// and then the others in the order in which they began.
func conversions(plans []record.Plan, runs []*record.Run) []report.StepStatusOf {
	var out []report.StepStatusOf
	seen := make(map[string]bool)
	for _, p := range plans {
		for _, st := range p.Steps {
			if !seen[st.Conversion] {
				seen[st.Conversion] = true
				out = append(out, report.StepStatusOf{Collection: st.Collection, From: st.From, To: st.To, Into: st.Into, Conversion: st.Conversion, Status: report.NotBegun})
			}
		}
	}
	for _, r := range runs {
		if !seen[r.Conversion] {
			seen[r.Conversion] = true
			out = append(out, report.StepStatusOf{Collection: r.Collection, From: r.From, To: r.To, Into: r.Into, Conversion: r.Conversion, Status: report.NotBegun})
		}
	}
	return out
}

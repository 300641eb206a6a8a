package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// loadFlags holds the flag for failures of the server.
type loadFlags struct{ retryFor time.Duration }

func (l *loadFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&l.retryFor, "retry-for", 5*time.Minute, "how long to try again if the server is lost, has no primary, or is overloaded; 0 to stop at once")
}

func (l *loadFlags) check() error {
	if l.retryFor < 0 || l.retryFor > 24*time.Hour {
		return failure.Usagef("--retry-for must be from 0 to 24h")
	}
	return nil
}

// session connects to the server, for work that is recorded as r says. end must be called at its end.
func (c *console) session(ctx context.Context, mode server.Mode, l loadFlags, r migration.Recording) (s *migration.Session, end func(), err error) {
	client, err := c.connect(ctx, mode)
	if err != nil {
		return nil, nil, err
	}
	v, _ := build()
	s = &migration.Session{Client: client, URI: c.connectionString(), Version: v, Messages: c, Recording: r}
	s.Patience = patience.New(l.retryFor, patience.System, func(err error, left time.Duration) {
		c.Warn("%s; trying again for up to %s", s.Explain(err).Text, left.Round(time.Second))
	})
	return s, func() { server.Disconnect(client) }, nil
}

// recordFlags holds the flags, of the commands that write, for the record of conversions.
type recordFlags struct{ migration.Recording }

func (f *recordFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.TakeOver, "take-over", false, "take over from a run that has not ended, after its last writes have ended")
	flags.DurationVar(&f.BatchTimeout, "batch-timeout", 0, "time limit for a batch, and for how long a server may carry out one of a run that was lost; by default 30s if the server ends a batch at its limit, and 5m otherwise")
}

func (f *recordFlags) check() error {
	if f.BatchTimeout != 0 && (f.BatchTimeout < time.Second || f.BatchTimeout > time.Hour) {
		return failure.Usagef("--batch-timeout must be from 1s to 1h")
	}
	return nil
}

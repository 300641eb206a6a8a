package cli

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// loadFlags holds the flags, of the commands that write, for the load on the server and for its
// failures. pace and patience are shared by all conversions of a command.
type loadFlags struct {
	rate     count
	fullLoad bool
	retryFor time.Duration

	pace     *patience.Pace
	patience *patience.Patience
}

// add adds the flags. limits is false for a command whose load cannot be limited.
func (l *loadFlags) add(cmd *cobra.Command, limits bool) {
	f := cmd.Flags()
	if limits {
		l.rate = count{0, 0, math.MaxInt32}
		f.Var(&l.rate, "rate", "maximum number of documents to change per second; 0 for no limit")
		f.BoolVar(&l.fullLoad, "full-load", false, "do not slow down if the server takes longer than usual for a batch")
	}
	f.DurationVar(&l.retryFor, "retry-for", 5*time.Minute, "how long to try again if the server is lost, has no primary, or is overloaded; 0 to stop at once")
}

func (l *loadFlags) check() error {
	if l.retryFor < 0 || l.retryFor > 24*time.Hour {
		return failure.Usagef("--retry-for must be from 0 to 24h")
	}
	return nil
}

// begin sets what all conversions share, when the server has been reached.
func (l *loadFlags) begin(c *console) {
	l.pace = patience.NewPace(l.rate.value)
	l.patience = patience.New(l.retryFor, patience.System, func(err error, left time.Duration) {
		e := failure.Explain(err, c.connectionString())
		c.warn("%s; trying again for up to %s", e.Text, left.Round(time.Second))
	})
}

// latency returns what slows down one conversion.
func (l *loadFlags) latency() *patience.Latency {
	if l.fullLoad {
		return nil
	}
	return patience.NewLatency(patience.System)
}

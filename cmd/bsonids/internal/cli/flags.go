package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// value is the value of a flag that is checked where it is parsed.
type value[T any] struct {
	to    *T
	kind  string // for --help
	parse func(string) (T, error)
}

func (v value[T]) String() string { return fmt.Sprint(*v.to) }
func (v value[T]) Type() string   { return v.kind }

// Set returns an error if s may not be the value.
func (v value[T]) Set(s string) error {
	x, err := v.parse(s)
	if err == nil {
		*v.to = x
	}
	return err
}

// between returns the value of a flag that takes what is from least to most.
func between[T cmp.Ordered](to *T, kind string, parse func(string) (T, error), least, most T) pflag.Value {
	return value[T]{to, kind, func(s string) (T, error) {
		x, err := parse(s)
		if err != nil || x < least || x > most {
			return x, fmt.Errorf("must be from %v to %v", least, most)
		}
		return x, nil
	}}
}

// number returns the value of a flag that takes an integer. *to is the default.
func number(to *int, least, most int) pflag.Value {
	return between(to, "int", strconv.Atoi, least, most)
}

// wordFlag adds a flag that takes one of several words. *to is its default.
func wordFlag(cmd *cobra.Command, flags *pflag.FlagSet, to *string, name, short, usage string, words ...string) {
	v := value[string]{to, "string", func(s string) (string, error) { return s, oneOf(words, s) }}
	flags.VarP(v, name, short, usage+strings.Join(words, ", "))
	completeWords(cmd, name, words...)
}

// oneOf returns an error if s is not one of the words.
func oneOf(words []string, s string) error {
	if !slices.Contains(words, s) {
		return fmt.Errorf("%q must be one of %s", s, strings.Join(words, ", "))
	}
	return nil
}

// The formats of --output.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatHTML  = "html"
)

// outputFlag adds --output, with a table as the default.
func (c *console) outputFlag(cmd *cobra.Command, formats ...string) {
	c.output = formatTable
	wordFlag(cmd, cmd.Flags(), &c.output, "output", "o", "format of the output: ", append([]string{formatTable}, formats...)...)
}

// serverFlags adds the flags of the commands that need a server.
func (c *console) serverFlags(cmd *cobra.Command) {
	// The default is read later, because --help prints the default of a flag.
	cmd.Flags().StringVar(&c.uri, "uri", "", "connection string; other users of the machine can read it in the list of processes")
	cmd.Flags().StringVar(&c.uriFile, "uri-file", "", "file that holds the connection string; MONGODB_URI is used if neither flag is given")
	cmd.MarkFlagsMutuallyExclusive("uri", "uri-file")
}

// retryFlag adds --retry-for.
func (c *console) retryFlag(cmd *cobra.Command) {
	c.retryFor = 5 * time.Minute
	cmd.Flags().Var(between(&c.retryFor, "duration", time.ParseDuration, 0, 24*time.Hour), "retry-for",
		"how long to try again if the server is lost, has no primary, or is overloaded; 0 to stop at once")
}

// timeoutFlag adds --batch-timeout. initial is what --help names as the default; the value is 0 then.
func (c *console) timeoutFlag(cmd *cobra.Command, initial time.Duration, usage string) {
	cmd.Flags().Var(between(&c.recording.BatchTimeout, "duration", time.ParseDuration, time.Second, time.Hour), "batch-timeout", usage)
	cmd.Flags().Lookup("batch-timeout").DefValue = initial.String()
}

// changeFlags adds the flags of the verbs that change documents: also those for the batches, and for the record of
// conversions.
func (c *console) changeFlags(cmd *cobra.Command, batch *int, write *bool) {
	c.serverFlags(cmd)
	c.outputFlag(cmd, formatJSON)
	c.retryFlag(cmd)
	*batch = 1000
	f := cmd.Flags()
	f.Var(number(batch, 1, 10_000), "batch", "number of documents to read and write at a time")
	f.BoolVar(write, "write", false, "change the documents")
	f.BoolVar(&c.recording.TakeOver, "take-over", false, "take over from a run that has not ended, after its last writes have ended")
	c.timeoutFlag(cmd, 0, "time limit for a batch, and for how long a server may carry out one of a run that was lost; by default 30s if the server ends a batch at its limit, and 5m otherwise")
}

// noneEmpty returns an error if a flag was given an empty value, as a shell does for --collection "$NAME"
// if NAME is not set. Without the flag, a command would read or change other documents.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		list, ok := f.Value.(pflag.SliceValue)
		if err == nil && (ok && len(list.GetSlice()) == 0 || f.Value.String() == "") {
			err = fmt.Errorf("--%s is empty", f.Name)
		}
	})
	return err
}

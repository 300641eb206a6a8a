package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// enum is the value of a flag that takes one of several words.
type enum struct {
	value string
	words []string
}

func (e *enum) String() string { return e.value }
func (e *enum) Type() string   { return "string" }

// Set returns an error if s is not one of the words.
func (e *enum) Set(s string) error {
	if !slices.Contains(e.words, s) {
		return fmt.Errorf("must be one of %s", strings.Join(e.words, ", "))
	}
	e.value = s
	return nil
}

// enums is the value of a flag that takes several words, separated by commas.
type enums struct{ values, words []string }

func (e *enums) String() string { return strings.Join(e.values, ",") }
func (e *enums) Type() string   { return "strings" }

// Set adds the words. It returns an error if one of them is unknown.
func (e *enums) Set(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		if !slices.Contains(e.words, word) {
			return fmt.Errorf("%q must be one of %s", word, strings.Join(e.words, ", "))
		}
		if !slices.Contains(e.values, word) {
			e.values = append(e.values, word)
		}
	}
	return nil
}

// The formats of --output.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatHTML  = "html"
)

// outputFlag adds --output. The first of the formats is its default.
func outputFlag(cmd *cobra.Command, formats ...string) *enum {
	e := &enum{value: formats[0], words: formats}
	cmd.Flags().VarP(e, "output", "o", "format of the output: "+strings.Join(formats, ", "))
	completeWords(cmd, "output", false, formats...)
	return e
}

// kindFlag is the value of a flag that names how UUIDs are stored.
type kindFlag struct{ kinds.Kind }

func (k *kindFlag) String() string { return k.Name }
func (k *kindFlag) Type() string   { return "string" }

func (k *kindFlag) Set(s string) (err error) {
	k.Kind, err = kinds.ParseBinary(s)
	return err
}

// count is the value of a flag that takes an integer between least and most.
type count struct{ value, least, most int }

func (c *count) String() string { return strconv.Itoa(c.value) }
func (c *count) Type() string   { return "int" }

func (c *count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("not an integer")
	}
	if n < c.least || n > c.most {
		return fmt.Errorf("must be from %d to %d", c.least, c.most)
	}
	c.value = n
	return nil
}

// batchFlag adds --batch.
func batchFlag(cmd *cobra.Command) *count {
	c := &count{value: 1000, least: 1, most: 10_000}
	cmd.Flags().Var(c, "batch", "number of documents to read and write at a time")
	return c
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

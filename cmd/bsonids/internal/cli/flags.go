package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
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
type kindFlag struct {
	kinds.Kind
	forms bool // the kind may be one that is not binary
}

func (k *kindFlag) String() string { return k.Name }
func (k *kindFlag) Type() string   { return "string" }

func (k *kindFlag) Set(s string) (err error) {
	parse := kinds.ParseBinary
	if k.forms {
		parse = kinds.Parse
	}
	k.Kind, err = parse(s)
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

// noneEmpty returns an error if a flag was given an empty value, as a shell does for --into "$NEW"
// if NEW is not set. Without the flag, a command would change other documents and use other
// safeguards.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		list, ok := f.Value.(pflag.SliceValue)
		if err == nil && (ok && len(list.GetSlice()) == 0 || f.Value.String() == "") {
			err = fmt.Errorf("--%s is empty", f.Name)
		}
	})
	return err
}

// nameFlag adds the name of the flag to an error about a file of a conversion.
func nameFlag(err error) error {
	var e *convert.RecordError
	if !errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("%s: %w", map[convert.Record]string{convert.StateRecord: "--state", convert.UndoRecord: "--undo-log", convert.SkipRecord: "--skip-list"}[e.Record], err)
}

func validDatabase(name string) bool {
	return name != "" && len(name) < 64 && !strings.ContainsAny(name, "/\\. \"$\x00")
}

func validCollection(name string) bool {
	return name != "" && !strings.HasPrefix(name, "system.") && !strings.ContainsAny(name, "$\x00")
}

// conversionFlags holds the flags of convert and verify that describe a conversion.
type conversionFlags struct {
	database, collection, into string
	query                      string
	from, to                   kindFlag
	fields                     []string
}

// add adds the flags.
func (f *conversionFlags) add(cmd *cobra.Command) {
	f.to.Kind, _ = kinds.Parse(kinds.Standard)
	f.from.forms, f.to.forms = true, true
	sources, targets := kinds.All(), kinds.Where(func(k kinds.Kind) bool { return k.Target })
	cmd.Flags().StringVar(&f.database, "db", "", "database")
	cmd.Flags().StringVar(&f.collection, "collection", "", "collection")
	cmd.Flags().Var(&f.from, "from", "representation of the stored values: "+kinds.List(sources))
	cmd.Flags().Var(&f.to, "to", "representation to convert to: "+kinds.List(targets))
	cmd.Flags().StringSliceVar(&f.fields, "field", nil, "path of a field to convert, as scan prints it; * matches any single name; by default, all fields")
	completeWords(cmd, "from", false, kinds.Names(sources)...)
	completeWords(cmd, "to", false, kinds.Names(targets)...)
	_ = cmd.MarkFlagRequired("from") // the flag exists
}

// patterns parses --field. The error is a usage error.
func patterns(fields []string) ([]walk.Pattern, error) {
	var out []walk.Pattern
	for _, field := range fields {
		p, err := walk.ParsePattern(field)
		if err != nil {
			return nil, failure.Usagef("--field: %v", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// needsField returns a usage error if only named fields are converted from the kind, and there are none.
func needsField(from kinds.Kind, fields []string) error {
	switch {
	case len(fields) > 0 || !from.NeedsField():
		return nil
	case from.IsBinary():
		return failure.Usagef("--from %s requires --field, because 16 bytes of subtype %d may be anything, such as a checksum", from.Name, from.Subtype)
	}
	return failure.Usagef("--from %s requires --field, because a value that looks like a UUID may be something else in another field", from.Name)
}

// described returns the conversion that the flags describe. The error is a usage error.
func (f *conversionFlags) described() (convert.Conversion, error) {
	p, err := patterns(f.fields)
	if err != nil {
		return convert.Conversion{}, err
	}
	if err := needsField(f.from.Kind, f.fields); err != nil {
		return convert.Conversion{}, err
	}
	c, err := convert.NewConversion(f.from.Kind, f.to.Kind, p)
	if err != nil {
		return c, failure.Usagef("--from %s --to %s: %v", f.from.Name, f.to.Name, err)
	}
	return c, nil
}

// conversion returns the conversion that the flags describe, and the identity that its files have.
// The error is a usage error.
func (f *conversionFlags) conversion() (convert.Conversion, convert.Identity, error) {
	fail := func(format string, args ...any) (convert.Conversion, convert.Identity, error) {
		return convert.Conversion{}, convert.Identity{}, failure.Usagef(format, args...)
	}
	c, err := f.described()
	switch {
	case err != nil:
		return c, convert.Identity{}, err
	case !validDatabase(f.database):
		return fail("--db: invalid database name %q", f.database)
	case slices.Contains([]string{"admin", "config", "local"}, f.database):
		return fail("--db %s is a database of the server itself", f.database)
	case !validCollection(f.collection):
		return fail("--collection: invalid collection name %q", f.collection)
	case f.into != "" && !validCollection(f.into):
		return fail("--into: invalid collection name %q", f.into)
	}
	id := convert.Identity{Database: f.database, Collection: f.collection, From: c.From.Name, To: c.To.Name, Into: f.into}
	for _, p := range c.Fields {
		id.Fields = append(id.Fields, p.String())
	}
	slices.Sort(id.Fields)
	return c, id, nil
}

// filter reads --query and rewrites it as canonical extended JSON.
func (f *conversionFlags) filter() (bson.D, error) {
	if f.query == "" {
		return nil, nil
	}
	// The driver ignores what follows the first value.
	if q := strings.TrimSpace(f.query); !json.Valid([]byte(q)) || q[0] != '{' {
		return nil, failure.Usagef("--query: must be a filter in extended JSON, such as {\"year\": 2020}")
	}
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(f.query), false, &d); err != nil {
		return nil, failure.Usagef("--query: invalid extended JSON: %v", err)
	}
	b, err := bson.MarshalExtJSON(d, true, false)
	if err != nil {
		return nil, failure.Usagef("--query: %v", err)
	}
	f.query = string(b)
	return d, nil
}

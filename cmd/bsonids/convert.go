package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// conversionFlags are those that say what a conversion is, for convert and verify.
type conversionFlags struct {
	database, collection, from, to, into string
	fields                               []string
}

func (f *conversionFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.database, "db", "", "database")
	cmd.Flags().StringVar(&f.collection, "collection", "", "collection")
	cmd.Flags().StringVar(&f.from, "from", "", "how the values are stored: standard, csharpLegacy, javaLegacy, pythonLegacy, or generic (subtype 0, network order)")
	cmd.Flags().StringVar(&f.to, "to", "standard", "how they are to be stored: standard, csharpLegacy, javaLegacy, pythonLegacy")
	cmd.Flags().StringSliceVar(&f.fields, "field", nil, "field path as scan prints it; all fields if absent; * is any one name")
	for _, name := range []string{"db", "collection", "from"} {
		_ = cmd.MarkFlagRequired(name) // the flag is there
	}
}

func (f *conversionFlags) conversion() (convert.Conversion, convert.Identity, error) {
	c, err := convert.NewConversion(f.from, f.to, f.fields)
	if err != nil {
		return c, convert.Identity{}, server.Usagef("%v", err)
	}
	if !validDatabase(f.database) {
		return c, convert.Identity{}, server.Usagef("--db %q is not the name of a database", f.database)
	}
	if !validCollection(f.collection) {
		return c, convert.Identity{}, server.Usagef("--collection %q is not the name of a collection", f.collection)
	}
	if f.into != "" && !validCollection(f.into) {
		return c, convert.Identity{}, server.Usagef("--into %q is not the name of a collection", f.into)
	}
	id := convert.Identity{Database: f.database, Collection: f.collection, From: c.From.Name, To: c.To.Name, Into: f.into}
	for _, p := range c.Fields {
		id.Fields = append(id.Fields, p.String())
	}
	slices.Sort(id.Fields)
	return c, id, nil
}

func validCollection(name string) bool {
	return name != "" && !strings.HasPrefix(name, "system.") && !strings.ContainsAny(name, "$\x00")
}

type convertOptions struct {
	conversionFlags
	write, force         bool
	state, undo, part    string
	rate, workers, batch int
	examples             int
}

func (a *app) convertCommand() *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Convert the UUIDs of a collection from one representation to another",
		Long: `convert changes the UUIDs of one collection, at every depth and in arrays.
Without --write it changes nothing and prints what it would change.

Only binary values of 16 octets with the subtype of --from are changed. Each
update names the values that were read, so that a document that another program
changed in between is looked at again and never overwritten. Documents that are
skipped are listed with the reason.

_id cannot be changed in place: --into makes a new collection, with the options
and indexes of the old one, and says that it is done when both were compared.

With --state it may be stopped at any moment, also by SIGKILL, and started again
with the same command. With --undo it writes down every value before it changes
it, for bsonids undo and bsonids verify. From one legacy representation to
another, both are needed: a converted value looks like one that isn't.`,
		Example: `  bsonids convert --db shop --collection orders --from javaLegacy --to standard
  bsonids convert --db shop --collection orders --from javaLegacy --to standard \
      --state orders.state --undo orders.undo --write
  bsonids convert --db shop --collection users --from csharpLegacy --to standard \
      --into users_standard --state users.state --write`,
		Args: cobra.NoArgs,
		RunE: runE(func(cmd *cobra.Command, _ []string) error { return a.convert(cmd.Context(), o) }),
	}
	a.serverFlags(cmd)
	a.outputFlag(cmd, "table, json")
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.into, "into", "", "write converted copies of all documents, _id included, into this new collection of the database")
	f.BoolVar(&o.write, "write", false, "change the documents")
	f.BoolVar(&o.force, "force", false, "go on although the values look like another byte order than --from says")
	f.StringVar(&o.state, "state", "", "file that holds how far the conversion has come")
	f.StringVar(&o.undo, "undo", "", "file to write the values to before they are changed")
	f.IntVar(&o.rate, "rate", 0, "documents to change in a second, at most; 0 for no limit")
	f.IntVar(&o.workers, "workers", 1, "how many batches to write at the same time; more help where the server writes in parallel")
	f.IntVar(&o.batch, "batch", 1000, "how many documents to read and to write at a time")
	f.StringVar(&o.part, "part", "", "convert one of several parts, such as 2/8, by a hash of _id: one machine for each")
	f.IntVar(&o.examples, "examples", 3, "how many documents to print as examples; -1 for all")
	return cmd
}

func (a *app) convert(ctx context.Context, o convertOptions) (err error) {
	conv, id, err := o.conversion()
	if err != nil {
		return err
	}
	part, err := convert.ParsePart(o.part)
	switch {
	case err != nil:
		return server.Usagef("--part: %v", err)
	case a.output != "table" && a.output != "json":
		return badOutput(a.output, "table, json")
	case o.workers < 1 || o.workers > 256:
		return server.Usagef("--workers %d: from 1 to 256", o.workers)
	case o.batch < 1 || o.batch > 10_000:
		return server.Usagef("--batch %d: from 1 to 10000", o.batch)
	case o.rate < 0:
		return server.Usagef("--rate %d: not below 0", o.rate)
	case o.into == o.collection:
		return server.Usagef("--into names the collection itself")
	case o.into != "" && o.undo != "":
		return server.Usagef("--into leaves the collection as it is: there is nothing to undo")
	case o.state != "" && o.state == o.undo:
		return server.Usagef("--state and --undo name the same file")
	case conv.From.Name == "generic" && len(o.fields) == 0:
		return server.Usagef("--from generic needs --field: subtype 0 of 16 octets may be anything, a checksum for instance")
	case o.write && conv.SameSubtype() && o.into == "" && (o.state == "" || o.undo == ""):
		return server.Usagef("from %s to %s both values have subtype 3, and nothing but a record tells a converted one: give --state and --undo", conv.From.Name, conv.To.Name)
	}
	id.Part = part.String()
	opts := convert.Options{Conversion: conv, Write: o.write, Workers: o.workers, Rate: o.rate, Part: part, Batch: o.batch, Examples: o.examples}

	mode := server.Read
	if o.write {
		mode = server.Write
	}
	client, err := server.Connect(ctx, a.connectionString(), mode)
	if err != nil {
		return err
	}
	defer disconnect(client)
	coll := client.Database(o.database).Collection(o.collection)
	spec, err := a.mayConvert(ctx, coll, o)
	if err != nil {
		return err
	}

	if o.write && o.state != "" {
		if opts.State, err = convert.OpenState(o.state, id); err != nil {
			return server.Usagef("%v", err)
		}
		defer func() { err = errors.Join(err, opts.State.Close()) }()
		if err := opts.State.Bind(spec.UUID); err != nil {
			return server.Usagef("%v", err)
		}
		if opts.State.Done {
			return a.reportDone(o, conv, opts.State.Skipped)
		}
	}
	begun := opts.State != nil && (opts.State.Position != nil || opts.State.UndoID != "" || opts.State.Created)
	if !begun {
		if err := a.checkOrder(ctx, coll, conv, o.force || !o.write); err != nil {
			return err
		}
	}
	if o.write && o.undo != "" {
		if opts.Undo, err = convert.OpenUndoLog(o.undo, id); err != nil {
			return server.Usagef("%v", err)
		}
		defer func() { err = errors.Join(err, opts.Undo.Close()) }()
	}

	total, err := coll.EstimatedDocumentCount(ctx)
	if err != nil {
		return err
	}
	bar := a.progress(total, o.database+"."+o.collection)
	opts.Progress = bar.add
	start := time.Now()
	if o.into != "" {
		res, err := convert.Into(ctx, coll, client.Database(o.database).Collection(o.into), opts)
		bar.done()
		return a.reportCopy(o, res, err)
	}
	res, err := convert.InPlace(ctx, coll, opts)
	bar.done()
	return a.reportInPlace(o, conv, res, time.Since(start), err)
}

// find returns what the server says of the collection. It is an error if there is none.
func find(ctx context.Context, coll *mongo.Collection) (*mongo.CollectionSpecification, error) {
	specs, err := coll.Database().ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: coll.Name()}})
	if err == nil && len(specs) == 0 {
		err = server.Usagef("there is no collection %s.%s", coll.Database().Name(), coll.Name())
	}
	if err != nil {
		return nil, err
	}
	return &specs[0], nil
}

// mayConvert finds out what would go wrong later before anything is changed.
func (a *app) mayConvert(ctx context.Context, coll *mongo.Collection, o convertOptions) (*mongo.CollectionSpecification, error) {
	spec, err := find(ctx, coll)
	if err != nil {
		return nil, err
	}
	if spec.Type == "view" || spec.Type == "timeseries" {
		return nil, server.Usagef("%s.%s is a %s, whose documents cannot be converted", o.database, o.collection, spec.Type)
	}
	if o.write && o.into == "" {
		// No document has this _id: the update changes nothing, and is refused to who may not update.
		_, err = coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}})
	}
	return spec, err
}

// checkOrder weighs whether the values are in the order that --from says, from a sample, and refuses where they clearly
// aren't: nothing else stands between a slip and a collection of other UUIDs.
func (a *app) checkOrder(ctx context.Context, coll *mongo.Collection, conv convert.Conversion, goOn bool) error {
	if conv.From.Name == "standard" {
		return nil
	}
	name := coll.Database().Name() + "." + coll.Name()
	c := scan.NewCollector(name)
	quiet := *a
	quiet.quiet = true
	if _, err := quiet.collect(ctx, coll, c, scanOptions{sample: 2000}); err != nil {
		return err
	}
	for _, f := range scan.Judge([]*scan.Collector{c}, time.Now())[0].Fields {
		if len(conv.Fields) > 0 && !slices.ContainsFunc(conv.Fields, func(p walk.Pattern) bool { return p.MatchField(f.Path) }) {
			continue
		}
		for _, e := range f.Evidence {
			if e.Subtype != conv.From.Subtype || e.Verdict == conv.From.Name {
				continue
			}
			if e.Verdict == "cannot tell" {
				a.warn("%s: nothing in the values says whether %s is right: %s", f.Path, conv.From.Name, strings.Join(e.Reasons, "; "))
				continue
			}
			text := fmt.Sprintf("%s is not %s by its values but %s", f.Path, conv.From.Name, report.Headline(e))
			if !goOn {
				return server.Usagef("%s; see bsonids scan, and use --force to convert nevertheless", text)
			}
			a.warn("%s", text)
		}
	}
	return nil
}

// conversionReport is the output of convert as JSON.
type conversionReport struct {
	Collection string `json:"collection"`
	From       string `json:"from"`
	To         string `json:"to"`
	Into       string `json:"into,omitempty"`
	Written    bool   `json:"written"`
	Finished   bool   `json:"finished"`
	Examples   []any  `json:"examples,omitempty"`
	Result     any    `json:"result"`
}

func (a *app) reportInPlace(o convertOptions, conv convert.Conversion, res convert.Result, took time.Duration, failure error) error {
	var examples []any
	for _, p := range res.Examples {
		changes := bson.A{}
		for _, ch := range p.Changes {
			changes = append(changes, bson.D{{Key: "path", Value: ch.Path},
				{Key: "old", Value: bson.Binary{Subtype: conv.From.Subtype, Data: ch.Old[:]}}, {Key: "new", Value: bson.Binary{Subtype: conv.To.Subtype, Data: ch.New[:]}}})
		}
		examples = append(examples, extended(bson.D{{Key: "_id", Value: p.ID}, {Key: "changes", Value: changes}}))
	}
	if a.output == "json" {
		err := a.json(conversionReport{o.database + "." + o.collection, conv.From.Name, conv.To.Name, "", o.write, failure == nil, examples, res})
		if failure != nil || err != nil {
			return errors.Join(failure, err)
		}
	} else {
		a.printInPlace(o, conv, res, took, failure)
	}
	if failure != nil {
		return a.stopped(failure, o)
	}
	if res.Skipped > 0 {
		return errIncomplete
	}
	return nil
}

// reportDone says that the state file leaves nothing to do, or nothing but what earlier runs skipped.
func (a *app) reportDone(o convertOptions, conv convert.Conversion, skipped int64) error {
	if a.output == "json" {
		r := conversionReport{Collection: o.database + "." + o.collection, From: conv.From.Name, To: conv.To.Name, Written: o.write, Finished: true}
		if o.into != "" {
			r.Into, r.Result = o.database+"."+o.into, convert.Copied{Fields: convert.Tally{}, Indexes: []string{}}
		} else {
			r.Result = convert.Result{Fields: convert.Tally{}, Skipped: skipped}
		}
		if err := a.json(r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "%s.%s: %s says that this conversion is finished; nothing was done.\n", o.database, o.collection, o.state)
		if skipped > 0 {
			fmt.Fprintf(a.out, "It skipped %d documents.\n", skipped)
		}
		if !conv.SameSubtype() || o.into != "" {
			fmt.Fprintln(a.out, "To go over the collection again, use another state file.")
		}
	}
	if skipped > 0 {
		return errIncomplete
	}
	return nil
}

// stopped says what to do after a run that didn't come to its end.
func (a *app) stopped(err error, o convertOptions) error {
	if !o.write {
		return err
	}
	e := server.Explain(err, a.connectionString())
	what := "what was converted so far stays"
	if o.state != "" {
		what += "; the same command goes on from here"
	} else {
		what += ", and the same command converts the rest"
	}
	return &server.Error{Kind: e.Kind, Text: e.Text + "; " + what}
}

func (a *app) printInPlace(o convertOptions, conv convert.Conversion, res convert.Result, took time.Duration, failure error) {
	verb, how := "changed", ""
	if !o.write {
		verb, how = "to change", "; dry run, nothing is changed"
	}
	fmt.Fprintf(a.out, "%s.%s%s: %s (subtype %d) to %s (subtype %d)%s\n\n", o.database, o.collection, partOf(o.part),
		conv.From.Name, conv.From.Subtype, conv.To.Name, conv.To.Subtype, how)
	if len(res.Fields) > 0 {
		t := a.table("field", "values "+verb)
		for _, f := range slices.Sorted(maps.Keys(res.Fields)) {
			t.AppendRow([]any{f, res.Fields[f]})
		}
		t.Render()
		fmt.Fprintln(a.out)
	}
	fmt.Fprintf(a.out, "%d values in %d documents %s, of %d documents read", res.Values, res.Documents, verb, res.Read)
	if o.write && failure == nil && took > 0 {
		fmt.Fprintf(a.out, ", in %s", took.Round(10*time.Millisecond))
	}
	fmt.Fprintln(a.out)
	if res.Overtaken > 0 {
		fmt.Fprintf(a.out, "%d documents were changed or deleted by other programs first and needed nothing more\n", res.Overtaken)
	}
	if len(res.Examples) > 0 {
		fmt.Fprintln(a.out)
		t := a.table("_id", "path", "old", "new")
		for _, p := range res.Examples {
			for i, ch := range p.Changes {
				id := ""
				if i == 0 {
					id = mongosh(p.ID)
				}
				t.AppendRow([]any{id, ch.Path, binary(conv.From.Subtype, ch.Old), binary(conv.To.Subtype, ch.New)})
			}
		}
		t.Render()
	}
	a.printSkips(res.Skipped, res.SkippedFor, res.Skips)
	switch {
	case failure != nil:
	case !o.write && res.Documents > 0:
		fmt.Fprintln(a.out, "\nAdd --write to change them.")
	case o.write:
		fmt.Fprintln(a.out, "\nDone. Prove it with bsonids verify.")
	}
}

func partOf(part string) string {
	if part == "" {
		return ""
	}
	return ", part " + part
}

// printSkips prints at most this many of them; all are in the JSON output.
const printedSkips = 10

func (a *app) printSkips(n int64, reasons convert.Tally, skips []convert.Skip) {
	if n == 0 {
		return
	}
	fmt.Fprintln(a.out)
	t := a.table("skipped because", "times")
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		t.AppendRow([]any{r, reasons[r]})
	}
	t.Render()
	fmt.Fprintln(a.out)
	t = a.table("_id", "skipped because")
	for _, s := range skips[:min(len(skips), printedSkips)] {
		t.AppendRow([]any{mongosh(s.ID), s.Reason})
	}
	t.Render()
	if n > printedSkips {
		fmt.Fprintf(a.out, "… and %d more; --output json lists them\n", n-printedSkips)
	}
}

func (a *app) reportCopy(o convertOptions, res convert.Copied, failure error) error {
	if a.output == "json" {
		var examples []any
		for _, e := range res.Examples {
			examples = append(examples, map[string]any{"before": extended(e[0]), "after": extended(e[1])})
		}
		err := a.json(conversionReport{o.database + "." + o.collection, o.from, o.to, o.database + "." + o.into, o.write, failure == nil && res.Verified, examples, res})
		if failure != nil || err != nil {
			return errors.Join(failure, err)
		}
	} else {
		a.printCopy(o, res, failure)
	}
	switch {
	case failure != nil:
		return a.stopped(failure, o)
	case o.write && !res.Verified:
		return errIncomplete
	}
	return nil
}

func (a *app) printCopy(o convertOptions, res convert.Copied, failure error) {
	verb, how := "copied", ""
	if !o.write {
		verb, how = "to copy", "; dry run, nothing is changed"
	}
	fmt.Fprintf(a.out, "%s.%s into %s.%s%s: %s to %s%s\n\n", o.database, o.collection, o.database, o.into, partOf(o.part), o.from, o.to, how)
	if len(res.Fields) > 0 {
		t := a.table("field", "values")
		for _, f := range slices.Sorted(maps.Keys(res.Fields)) {
			t.AppendRow([]any{f, res.Fields[f]})
		}
		t.Render()
		fmt.Fprintln(a.out)
	}
	fmt.Fprintf(a.out, "%d documents %s, with %d values converted\n", res.Documents, verb, res.Values)
	if len(res.Indexes) > 0 {
		fmt.Fprintf(a.out, "indexes: %s\n", strings.Join(res.Indexes, ", "))
	}
	for _, e := range res.Examples {
		fmt.Fprintf(a.out, "\n  %v\n  %v\n", e[0], e[1])
	}
	if failure != nil {
		return
	}
	if !o.write {
		fmt.Fprintln(a.out, "\nAdd --write to make the collection.")
		return
	}
	if res.Followed > 0 {
		fmt.Fprintf(a.out, "%d copies were brought up to date with what changed in the source meanwhile\n", res.Followed)
	}
	a.printFindings(append(res.Conflicts, res.Proof.Skips...))
	switch {
	case res.Verified && o.part != "":
		fmt.Fprintf(a.out, "\nVerified: the %d documents of this part are in %s, octet for octet.\nWhen all parts are, prove the whole with bsonids verify --into %s.\n", res.Proof.Proven, o.into, o.into)
	case res.Verified:
		fmt.Fprintf(a.out, "\nVerified: %s has the %d documents of %s, octet for octet, and no others.\n", o.into, res.Proof.Proven, o.collection)
	case len(res.Conflicts)+len(res.Proof.Skips) == 0:
		fmt.Fprintf(a.out, "\nNot verified: in %d passes the source never kept still. Stop the programs that write to it and run the same command again.\n", res.Passes)
	default:
		fmt.Fprintln(a.out, "\nNot verified, see the findings. The source is as it was.")
	}
}

func (a *app) printFindings(skips []convert.Skip) {
	if len(skips) == 0 {
		return
	}
	fmt.Fprintln(a.out)
	t := a.table("_id", "finding")
	for _, s := range skips[:min(len(skips), printedSkips)] {
		t.AppendRow([]any{mongosh(s.ID), s.Reason})
	}
	t.Render()
	if n := len(skips); n > printedSkips {
		fmt.Fprintf(a.out, "… and %d more; --output json lists them\n", n-printedSkips)
	}
}

// mongosh writes a value as it can be pasted, as far as ids go.
func mongosh(v bson.RawValue) string {
	if subtype, data, ok := v.BinaryOK(); ok && len(data) == 16 {
		return binary(subtype, [16]byte(data))
	}
	if id, ok := v.ObjectIDOK(); ok {
		return fmt.Sprintf("ObjectId(%q)", id.Hex())
	}
	return v.String()
}

func binary(subtype byte, octets [16]byte) string {
	return explain.Paste(subtype, octets)
}

// extended is a document as relaxed extended JSON inside other JSON.
func extended(doc any) any {
	b, err := bson.MarshalExtJSON(doc, false, false)
	if err != nil {
		return err.Error()
	}
	return rawJSON(b)
}

type rawJSON []byte

func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

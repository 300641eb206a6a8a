package cli

import (
	"bufio"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

type showVerb struct {
	*console
	i3core bool
}

func (o *showVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show VALUE|FILE",
		Short: "Explain a UUID or ObjectID in any form that shells and drivers write, or print an undo log or a ledger",
		Long: `show explains one identifier: its bytes and subtype in each representation, how
drivers print it, its version, variant and time, and an expression for mongosh.
It does not need a server.

VALUE is a UUID, 16 or 12 bytes in hexadecimal, 16 bytes in base64, what a
shell prints (UUID("…"), BinData(3, "…"), HexData(4, "…"),
Binary.createFromBase64('…', 3), JUUID("…"), CSUUID("…"), PYUUID("…"),
LegacyJavaUUID("…"), ObjectId("…")), extended JSON ($uuid, $binary, $oid), or the
text of a ULID or TypeID.

Nothing in a UUID tells who made it. show adds the time of version 8 in the order
of csharpLegacy or javaLegacy, which bsonids makes, and of version 7 of a draft of
2021, if it is from 2021 until in a year. --i3core adds the formats of the i3core
library that the bits fit.

show FILE prints an undo log or a ledger as text, with a record on each line: of
an undo log, one document in canonical extended JSON, with the old and the new
values. --output does not change it.`,
		Example: `  bsonids show 00112233-4455-6677-8899-aabbccddeeff
  bsonids show 'BinData(3, "d2ZVRDMiEQD/7t3Mu6qZiA==")'
  bsonids show '{"$oid": "699dfad90ca573f85c0eec1c"}' --output json
  bsonids show orders.undo`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&o.i3core, "i3core", false, "also read the formats of the i3core library")
	o.outputFlag(cmd, formatJSON)
	return cmd
}

func (o *showVerb) run(context.Context) error {
	v, err := explain.Parse(o.args[0])
	if err != nil && migration.Exists(o.args[0]) {
		return o.file(o.args[0])
	}
	if err != nil {
		return failure.Usagef("%v", err)
	}
	e := explain.Explain(v, explain.Options{I3Core: o.i3core})
	return o.print(report.Explanation(e), true)
}

// file prints a file of a conversion as text.
func (o *showVerb) file(path string) error {
	out := bufio.NewWriter(o.out)
	return migration.FileError(errors.Join(convert.WriteText(out, path), out.Flush()))
}

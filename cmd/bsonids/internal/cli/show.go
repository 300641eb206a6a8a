package cli

import (
	"bufio"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

type showVerb struct {
	*console
	i3core bool
	all    bool
}

func (o *showVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show VALUE|FILE",
		Short: "Explain a UUID or ObjectID in any form that shells and drivers write, or print an undo log",
		Long: `show explains one identifier: its version, variant and time, the UUID in each byte
order or, if the form determines it, an expression for mongosh in each
representation, and with --all how drivers print it.
It does not need a server.

VALUE is a UUID, 16 or 12 bytes in hexadecimal, 16 bytes in base64, what a
shell prints (UUID("…"), BinData(3, "…"), HexData(4, "…"),
Binary.createFromBase64('…', 3), JUUID("…"), CSUUID("…"), PYUUID("…"),
LegacyJavaUUID("…"), ObjectId("…")), extended JSON ($uuid, $binary, $oid), what Go
prints of a bson.Binary ({3 [119 …]}, {Subtype:3 Data:[…]}, and its JSON), what
PyMongo prints (Binary(b'…', 3)), UUID('…', JAVA_LEGACY),
Binary.from_uuid(UUID('…'), JAVA_LEGACY), or the text of a ULID or TypeID.
The string of BinData may be hexadecimal, as in errors of a server, and the bytes
of a binary value may be the text of a UUID: show says so.

One value takes at most 80 columns and 24 lines. --all adds its bytes and extended
JSON in each representation, every byte order, all that other formats have, and what
programs print. JSON always has all of it.

Nothing in a UUID tells who made it. show adds the time of version 8 in the order
of csharpLegacy or javaLegacy, which bsonids makes, and of version 7 of a draft of
2021, if it is from 2021 until in a year. --i3core adds the formats of the i3core
library that the bits fit, and with --all their fields.

show FILE prints an undo log as text, with a record on each line: one document in
canonical extended JSON, with the old and the new values. --output does not change it.`,
		Example: `  bsonids show 00112233-4455-6677-8899-aabbccddeeff
  bsonids show 'BinData(3, "d2ZVRDMiEQD/7t3Mu6qZiA==")'
  bsonids show "Binary(b'0123456789abcdef', 3)" --all
  bsonids show '{"$oid": "699dfad90ca573f85c0eec1c"}' --output json
  bsonids show 8f3a61c29b04d7e5.undo`,
		Args: arguments(1),
	}
	cmd.Flags().BoolVar(&o.i3core, "i3core", false, "also read the formats of the i3core library")
	cmd.Flags().BoolVar(&o.all, "all", false, "also print bytes, extended JSON, all byte orders and what programs print; JSON always has them")
	o.outputFlag(cmd, formatJSON)
	return cmd
}

func (o *showVerb) run(context.Context) error {
	v, err := explain.Parse(o.args[0])
	if err != nil && files.Exists(o.args[0]) {
		return o.file(o.args[0])
	}
	if err != nil {
		return failure.Usagef("%v", err)
	}
	e := explain.Explain(v, explain.Options{I3Core: o.i3core})
	return o.print(report.Explanation{Explanation: e, All: o.all}, true)
}

// file prints a file of a conversion as text.
func (o *showVerb) file(path string) error {
	out := bufio.NewWriter(o.out)
	return files.FileError(errors.Join(undolog.WriteText(out, path), out.Flush()))
}

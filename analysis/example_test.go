package analysis_test

import (
	"cmp"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"

	goanalysis "golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/bsonids/bsonids/analysis"
)

// Run the analyzer on a package from a program. The command bsonidsvet, go vet and golangci-lint print the
// same findings.
func Example() {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax,
		Dir:  "testdata",
		Env:  append(os.Environ(), "GOWORK=off"),
	}, "./planted", "./program")
	if err != nil {
		fmt.Println(err)
		return
	}
	graph, err := checker.Analyze([]*goanalysis.Analyzer{analysis.Analyzer}, pkgs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	type finding struct {
		at goanalysis.Diagnostic
		in token.Position
	}
	var findings []finding
	for _, root := range graph.Roots {
		for _, d := range root.Diagnostics {
			findings = append(findings, finding{d, root.Package.Fset.Position(d.Pos)})
		}
	}
	slices.SortFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.in.Filename, b.in.Filename), cmp.Compare(a.in.Line, b.in.Line))
	})
	for _, f := range findings {
		fmt.Printf("%s:%d: %s: %s\n", filepath.Base(f.in.Filename), f.in.Line, f.at.Category, f.at.Message)
	}
	// Output:
	// planted.go:9: v1: version 1 of the driver beside version 2: its types, such as primitive.Binary, are other types for version 2
	// planted.go:23: unregistered: a registry of bsoncodec refuses OrderID, which is of kind [16]byte and not registered: call RegistryBuilder.RegisterUUIDType; if that is done elsewhere, write //bsonids:registered above its declaration, or name it in the flag -registered (golangci-lint: registered)
	// planted.go:28: v1: version 2 of the driver ignores this form of MarshalBSONValue: the method must be MarshalBSONValue() (byte, []byte, error); what version 2 has stored since without it has another form
	// planted.go:36: octets: the bytes of a UUID in a bson.Binary of subtype 0: other drivers do not read it as a UUID; use the UUID itself, or uuidrep.NewBinary
	// planted.go:40: octets: the bytes of a UUID in a bson.Binary of subtype 3: in this order they are the representation pythonLegacy; use uuidrep.NewBinaryWithRepresentation
	// planted.go:41: octets: the bytes of a UUID in a document are stored as a binary value of subtype 0: use the UUID itself, or uuidrep.NewBinary
	// planted.go:44: octets: the bytes of a UUID in the field Customer are stored as a binary value of subtype 0: give the field a UUID type
	// planted.go:47: registry: bson.Marshal does not use the registry of the client, and the value holds a UUID: use bsoncodec.Marshal
	// planted.go:51: registry: RawValue.Unmarshal does not use the registry of the client, and the value holds a UUID: use bsoncodec.UnmarshalValue
	// planted.go:54: registry: the metadata of GridFS do not use the registry of the client, and the value holds a UUID: use clientopt.GridFS, or call SetRegistry of the upload options
	// program.go:7: client: no client of this program has a registry, and documents hold UUIDs (users.User), which the driver stores as binary subtype 0 and does not read from subtype 4: use clientopt.Connect
}

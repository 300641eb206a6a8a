package scan

import "go.mongodb.org/mongo-driver/v2/bson"

// Kind is a way to store UUIDs that a deployment may want to exclude.
type Kind = string

// The kinds.
const (
	// FoundLegacy is a field with values of subtype 3, values of subtype 4 that no program reads as UUIDs, because they
	// do not have 16 bytes, or the text of UUIDs in binary values of any subtype.
	FoundLegacy Kind = "legacy"
	// FoundMixed is a field whose UUIDs are stored in more than one way: subtypes, text, text in binary
	// values, or byte orders of one subtype.
	FoundMixed Kind = "mixed"
	// FoundGeneric is a field with UUIDs of subtype 0. Values that may be other data, such as
	// checksums, do not count.
	FoundGeneric Kind = "generic"
)

// Kinds are all kinds.
var Kinds = []Kind{FoundLegacy, FoundMixed, FoundGeneric}

// Is reports whether the field is of kind k.
func (f Field) Is(k Kind) bool {
	generic, mixed := false, false
	for _, e := range f.Evidence {
		generic = generic || e.Subtype == bson.TypeBinaryGeneric && e.Verdict != Undetermined
		mixed = mixed || e.Verdict == Mixed
	}
	switch k {
	case FoundLegacy:
		return f.Counts.Legacy+f.Counts.BinaryText+f.Counts.Malformed > 0
	case FoundGeneric:
		return generic
	}
	ways := 0
	for _, found := range []bool{f.Counts.Standard > 0, f.Counts.Legacy > 0, generic, f.Counts.Text > 0, f.Counts.BinaryText > 0} {
		if found {
			ways++
		}
	}
	return mixed || ways > 1
}

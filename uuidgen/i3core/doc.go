// Package i3core makes and reads the UUIDs of the i3core Uuid class: IETF time-based ([TimeBased]),
// random with a custom byte ([Random]), name-based ([NameBased]), sequential ([Sequential]), legacy
// interaction id ([Interaction]) and notifier ([Notifier]).
//
//	ids, err := i3core.NewSequentialGenerator(i3core.WithVersion(version)) // a *uuidgen.Generator
//	if err != nil {
//		return err
//	}
//	id, err := ids.NewUUID()
//	fields, err := i3core.DecodeTimeBased(u)
//	memory := uuidrep.CSharpLegacy.Permute(id) // as i3core holds it
//
// # Memory and text
//
// i3core holds a UUID as 16 bytes with the first three groups little-endian, as .NET does. This is
// its memory. A [uuid.UUID] here holds the canonical bytes, in the order of the text, as everywhere
// in Go. The method Permute of [uuidrep.CSharpLegacy] converts one into the other, in both directions.
// Every layout is described in memory, as in the document. A BSON binary of subtype 3 in the representation csharpLegacy holds exactly that
// memory. NewID of the generators therefore returns a [uuidrep.CSharpLegacyUUID], which is stored
// like this whatever the registry of the client says. This keeps the order of sequential UUIDs in
// MongoDB. For another representation, use a source that returns the [uuid.UUID] of NewUUID.
//
// # Formats
//
// Each format has a struct of its fields, whose UUID method puts them together ([NewNameBased] does it
// for a hash), and a Decode function, which takes a UUID apart. [uuid.Parse] reads the text of a UUID, and String returns it.
// A field that does not fit is a [*uuidgen.FieldError], which names the field. A UUID with all bits zero,
// [uuid.Nil], is NULL.
//
// A UUID is decoded only by the function of a format that the caller names; no format is guessed.
// Versions 0xC and 0xE are not IETF versions, and the document does not give the version of the
// sequential format. As the document warns, no decision about security may depend on a custom byte,
// or on any other field.
//
// The document does not give the version, the unit and the epoch of the sequential format, and does
// not say what the DBMS type changes apart from its two bits and where the counter starts. The choices
// are described where they are made. i3core may have chosen otherwise.
//
// It implements the documentation of the i3core Uuid class.
package i3core

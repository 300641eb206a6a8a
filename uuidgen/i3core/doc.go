// Package i3core makes and reads the UUIDs of the i3core Uuid class: IETF time-based ([TimeBased]), random with a
// custom octet ([Random]), name-based ([NameBased]), sequential ([Sequential]), legacy interaction id ([Interaction])
// and notifier ([Notifier]).
//
// # Memory and text
//
// i3core holds a UUID as 16 octets with the first three groups little-endian, as .NET does: its memory. A [uuid.UUID]
// here holds the canonical octets, in the order of the text, as everywhere in Go; [Memory] and [FromMemory] convert.
// Every format's layout is described in memory, as in the document. A BSON binary of subtype 3 in the representation
// csharpLegacy holds exactly that memory, octet for octet. So the generators' NewID gives a [uuidrep.CSharpLegacyUUID],
// which is stored so whatever the client's registry says: for sequential UUIDs this is what keeps their order in
// MongoDB.
//
// # Formats
//
// For each format there are a struct of its fields, whose UUID method puts them together; a Decode function, which
// takes a UUID apart; and a Parse function, which does so with a text of the 36 characters
// xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, in either letter case. The text of a UUID is its String. A field that does not
// fit is a [*FieldError], which names the field, on the way in and out.
//
// A UUID is taken apart only by the functions of a format that the caller names. Nothing here guesses one: versions 0xC
// and 0xE are no IETF versions, the document gives no version to the sequential format, and whoever has not made a UUID
// cannot know what its bits mean. The document's warning holds: never rest security on a custom octet, or on any field.
//
// The document is silent on some points: the version, unit and epoch of the sequential format, what the DBMS type
// changes besides its two bits, where the counter starts. What is chosen for them is said where it is chosen, and no
// claim is made that i3core chose the same.
//
// It implements the documentation of the i3core Uuid class.
package i3core

// Package structcodec encodes and decodes whole BSON documents by compiled plans: Go structs, and with a
// [DocumentDecoder] also [go.mongodb.org/mongo-driver/v2/bson.D], maps and any.
//
// The driver's struct codec calls a codec, a reader or a writer for every field of every document. A [Codec] looks at
// a struct type once, compiles a plan for it, and then appends the bytes of a value to one buffer, or reads the fields
// from the bytes of one document.
//
// The bytes, the values, the errors and the state of the target after an error are those of the driver's codecs. A
// type, a document or a context for which this cannot be guaranteed is passed to the codec that the Codec was made
// with; see [Codec].
package structcodec

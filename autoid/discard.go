package autoid

import "go.mongodb.org/mongo-driver/v2/bson"

// discard takes the value of an _id that counts as missing and drops it.
type discard struct{}

func (discard) WriteArray() (bson.ArrayWriter, error)                  { return discard{}, nil }
func (discard) WriteArrayElement() (bson.ValueWriter, error)           { return discard{}, nil }
func (discard) WriteArrayEnd() error                                   { return nil }
func (discard) WriteDocument() (bson.DocumentWriter, error)            { return discard{}, nil }
func (discard) WriteDocumentElement(string) (bson.ValueWriter, error)  { return discard{}, nil }
func (discard) WriteDocumentEnd() error                                { return nil }
func (discard) WriteCodeWithScope(string) (bson.DocumentWriter, error) { return discard{}, nil }
func (discard) WriteBinary([]byte) error                               { return nil }
func (discard) WriteBinaryWithSubtype([]byte, byte) error              { return nil }
func (discard) WriteBoolean(bool) error                                { return nil }
func (discard) WriteDBPointer(string, bson.ObjectID) error             { return nil }
func (discard) WriteDateTime(int64) error                              { return nil }
func (discard) WriteDecimal128(bson.Decimal128) error                  { return nil }
func (discard) WriteDouble(float64) error                              { return nil }
func (discard) WriteInt32(int32) error                                 { return nil }
func (discard) WriteInt64(int64) error                                 { return nil }
func (discard) WriteJavascript(string) error                           { return nil }
func (discard) WriteMaxKey() error                                     { return nil }
func (discard) WriteMinKey() error                                     { return nil }
func (discard) WriteNull() error                                       { return nil }
func (discard) WriteObjectID(bson.ObjectID) error                      { return nil }
func (discard) WriteRegex(string, string) error                        { return nil }
func (discard) WriteString(string) error                               { return nil }
func (discard) WriteSymbol(string) error                               { return nil }
func (discard) WriteTimestamp(uint32, uint32) error                    { return nil }
func (discard) WriteUndefined() error                                  { return nil }

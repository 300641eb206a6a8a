package bsoncodec

// EncodeAsString makes the registry write UUIDs as strings of 36 characters in lower case, for data
// that holds them as text, and read strings as [RegistryBuilder.AlsoDecodeString] does. Binary
// values are read as before, in the representation of the registry, which may be Unspecified.
// Targets of type any receive a string.
func (b *RegistryBuilder) EncodeAsString() *RegistryBuilder {
	b.asString = true
	return b
}

// EncodeZeroAsNull makes the registry write a UUID whose bits are all zero as null, which reads
// back as the zero UUID, or as a nil pointer. A valid zero value of a type that
// [RegistryBuilder.RegisterNullUUIDType] registers is written as a UUID.
func (b *RegistryBuilder) EncodeZeroAsNull() *RegistryBuilder {
	b.zeroAsNull = true
	return b
}

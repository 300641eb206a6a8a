package bsoncodec

// KeepBinary makes targets of type any, in [bson.D], [bson.M] and everywhere else, go on receiving
// a [bson.Binary] for a UUID, as they do from the driver's own registry. Targets of a UUID type
// receive UUIDs. It is for programs that assert bson.Binary, while they are changed. With
// [RegistryBuilder.SetImplicitType] it is an error of Build.
func (b *RegistryBuilder) KeepBinary() *RegistryBuilder {
	b.keepBinary = true
	return b
}

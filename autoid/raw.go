package autoid

import (
	"bytes"
	"encoding/binary"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// encodedDocument is a document that the driver copies as it is, whatever the registry says of byte
// slices.
type encodedDocument []byte

func (d encodedDocument) MarshalBSON() ([]byte, error) { return d, nil }

// encodedCopy returns the document that write writes.
func encodedCopy(write func(bson.ValueWriter) error) (bson.Raw, error) {
	b, doc, err := driver.WriteDocument(write)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return bytes.Clone(doc), nil
}

// encodeValue returns id as the registry of ec writes it in a document. The value may be null.
func encodeValue(ec bson.EncodeContext, id any) (bson.RawValue, error) {
	if _, _, err := encoderBehind(ec, reflect.ValueOf(id)); err != nil {
		return bson.RawValue{}, err
	}
	doc, err := encodedCopy(func(vw bson.ValueWriter) error {
		// The registry may have another encoder for bson.D.
		return dCodec.EncodeValue(ec, vw, reflect.ValueOf(bson.D{{Key: "_id", Value: id}}))
	})
	if err != nil {
		return bson.RawValue{}, err
	}
	return doc.LookupErr("_id")
}

// elementsOf returns the elements of a document or an array, and none of another value.
func elementsOf(v bson.RawValue) []bson.RawElement {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return nil
	}
	elements, _ := bson.Raw(v.Value).Elements()
	return elements
}

// valuesOf returns the elements of an array.
func valuesOf(v bson.RawValue) []bson.RawValue {
	elements := elementsOf(v)
	values := make([]bson.RawValue, len(elements))
	for i, e := range elements {
		values[i] = e.Value()
	}
	return values
}

// documentsOf returns the documents among the elements of an array.
func documentsOf(v bson.RawValue) []bson.Raw {
	var docs []bson.Raw
	for _, v := range valuesOf(v) {
		if doc, ok := v.DocumentOK(); ok {
			docs = append(docs, doc)
		}
	}
	return docs
}

// setOnInsert returns update, a document of operators without an _id, with an operator $setOnInsert
// that has the id.
func setOnInsert(update bson.Raw, id bson.RawValue) bson.Raw {
	var out []byte
	merged := false
	elements, _ := update.Elements()
	for _, e := range elements {
		if e.Key() != "$setOnInsert" || merged {
			out = append(out, e...)
			continue
		}
		merged = true
		fields := e.Value().Value
		out = appendElement(out, bson.TypeEmbeddedDocument, "$setOnInsert", idDocument(id, fields[4:len(fields)-1]))
	}
	if !merged {
		out = appendElement(out, bson.TypeEmbeddedDocument, "$setOnInsert", idDocument(id, nil))
	}
	return rawDocument(out)
}

// idDocument returns a document of an _id and other elements.
func idDocument(id bson.RawValue, elements []byte) bson.Raw {
	return rawDocument(append(appendElement(nil, id.Type, "_id", id.Value), elements...))
}

// withoutElement returns doc without the elements of the key.
func withoutElement(doc bson.Raw, key string) bson.Raw {
	var out []byte
	elements, _ := doc.Elements()
	for _, e := range elements {
		if e.Key() != key {
			out = append(out, e...)
		}
	}
	return rawDocument(out)
}

func appendElement(dst []byte, t bson.Type, key string, value []byte) []byte {
	dst = append(append(append(dst, byte(t)), key...), 0)
	return append(dst, value...)
}

// rawDocument returns the document of the elements.
func rawDocument(elements []byte) bson.Raw {
	doc := binary.LittleEndian.AppendUint32(nil, uint32(len(elements)+5))
	return append(append(doc, elements...), 0)
}

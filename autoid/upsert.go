package autoid

import (
	"fmt"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/elements"
)

// isUpsert reports whether opts set the option Upsert. An error among them is returned by the
// driver's method, which gets the same options.
func isUpsert[T any](opts []options.Lister[T], upsert func(*T) *bool) bool {
	args := new(T)
	for _, opt := range opts {
		if opt == nil || reflect.ValueOf(opt).IsNil() { // as the driver has it
			continue
		}
		for _, set := range opt.List() {
			if set != nil {
				_ = set(args)
			}
		}
	}
	return isSet(upsert(args))
}

func isSet(b *bool) bool { return b != nil && *b }

// alone is the index of an upsert that is not one of several models.
const alone = -1

// upsertError returns the error for the update or the replacement of an upsert.
func upsertError(index int, doc any, err error) error {
	return &IDError{Index: max(index, 0), Document: doc, Err: err, single: index == alone}
}

// updateUpsert returns what to send for the filter and the update of an upsert. The index is that of
// its model, or alone.
func (c *Collection) updateUpsert(filter, update any, index int) (f, u any, err error) {
	if filter == nil || update == nil {
		return filter, update, c.err // which the driver refuses
	}
	e, judged, err := c.judge(filter, update, index)
	if err != nil {
		return nil, nil, err
	}
	kind, doc, value, err := encodeUpdate(e.ec, update)
	if err != nil {
		return nil, nil, err
	}
	switch kind {
	case pipelineUpdate:
		if err = c.checkPipeline(doc); err == nil && judged.id != givenID {
			err = c.orObjectIDs(e, judged.id, "its update is a pipeline: put the _id into the filter, or update by operators")
		}
		if err != nil {
			return nil, nil, upsertError(index, update, err)
		}
		return judged.filter, value, nil
	case otherUpdate:
		return judged.filter, value, nil // which the driver refuses
	}
	carries, err := c.checkUpdate(doc)
	switch {
	case err != nil || carries || judged.id == givenID:
	case judged.id == maybeID:
		err = c.orObjectIDs(e, maybeID, "")
	default:
		var id bson.RawValue
		if id, err = c.upsertID(e, update); err == nil {
			doc = setOnInsert(doc, id)
			value = encodedDocument(doc)
		}
	}
	if err != nil {
		return nil, nil, upsertError(index, update, err)
	}
	return judged.filter, value, nil
}

// replaceUpsert returns what to send for the filter and the replacement of an upsert, which never
// gets a new id: if it replaced a document, the server would refuse another _id. The function encode
// encodes the replacement as the driver's method does.
func (c *Collection) replaceUpsert(
	filter, replacement any, index int, encode func(bson.EncodeContext, any) (updateKind, bson.Raw, any, error),
) (f, r any, err error) {
	if filter == nil || replacement == nil {
		return filter, replacement, c.err // which the driver refuses
	}
	e, judged, err := c.judge(filter, replacement, index)
	if err != nil {
		return nil, nil, err
	}
	kind, doc, value, err := encode(e.ec, replacement)
	if err != nil {
		return nil, nil, err
	}
	if kind != documentUpdate {
		return judged.filter, value, nil // which the driver or the server refuses
	}
	id, missing := doc.LookupErr("_id")
	form := formOfRaw(id)
	zero := missing == nil && (form.isZero() && !c.settings.zeroIsID || c.settings.zeroIsMissing && isZeroRaw(id))
	switch {
	case zero && judged.id == givenID:
		err = c.zeroError(form, "the replacement")
	case zero || missing != nil && judged.id != givenID:
		err = c.orObjectIDs(e, judged.id, "a replacement can replace a document, whose _id cannot change: put the _id into the filter, "+
			"or use UpdateOne")
		if zero {
			value = encodedDocument(withoutElement(doc, "_id"))
		}
	}
	if err != nil {
		return nil, nil, upsertError(index, replacement, err)
	}
	return judged.filter, value, nil
}

func (c *Collection) zeroError(form idForm, where string) error {
	return fmt.Errorf("%w: in %s it is %v; WithZeroIDs sends it", ErrZeroID, where, form)
}

// upsertID returns the next id of the source as it is encoded. It must fit the structs that update sets.
func (c *Collection) upsertID(e *encoding, update any) (bson.RawValue, error) {
	id, err := draw(c.src)
	if err != nil {
		return bson.RawValue{}, err
	}
	for _, t := range structsSet(update, e.reading) {
		if p, err := e.plan(t); err == nil {
			if err := p.fits(e.ec, &document{origin: c.origin}, id); err != nil {
				return bson.RawValue{}, err
			}
		}
	}
	raw, err := encodeValue(e.ec, id)
	if err != nil {
		return raw, err
	}
	switch form := formOfRaw(raw); {
	case form == nullForm:
		return raw, errNilID
	case form.isZero() && !c.settings.zeroIsID, form == genericForm && !c.settings.genericIsID:
		return raw, form.ofSource()
	}
	return raw, nil
}

// orObjectIDs returns ErrUpsert unless the ids of the source are ObjectIDs, which the server makes. Why is the reason if the
// filter gives no _id.
func (c *Collection) orObjectIDs(e *encoding, filter claim, why string) error {
	if oids, err := c.drawsObjectIDs(e); err != nil || oids {
		return err
	}
	if filter == maybeID {
		why = "some servers take an _id from its filter and others make one: name one _id, or look the document up first"
	}
	return fmt.Errorf("%w: %s", ErrUpsert, why)
}

// drawsObjectIDs reports whether the ids of the source are ObjectIDs. It draws one to know.
func (c *Collection) drawsObjectIDs(e *encoding) (bool, error) {
	if known := c.contexts.oids.Load(); known != nil {
		return *known, nil
	}
	id, err := c.upsertID(e, nil)
	if err != nil {
		return false, err
	}
	oid := id.Type == bson.TypeObjectID
	c.contexts.oids.Store(&oid)
	return oid, nil
}

// structsSet returns the types of the structs that $set and $setOnInsert of update have.
func structsSet(update any, r reading) []reflect.Type {
	var types []reflect.Type
	add := func(operator string, v reflect.Value) {
		if v = behindAll(v); (operator == "$set" || operator == "$setOnInsert") && v.Kind() == reflect.Struct {
			types = append(types, v.Type())
		}
	}
	switch v := behindAll(reflect.ValueOf(update)); {
	case v.Kind() == reflect.Map && hasPlainKeys(v.Type()):
		for operators := v.MapRange(); operators.Next(); {
			add(operators.Key().String(), operators.Value())
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				add(elements.TagOf(f, r.json).Name, v.Field(i))
			}
		}
	case v.IsValid() && v.Type() == reflect.TypeFor[bson.D]():
		for i := range v.Len() {
			add(v.Index(i).Field(0).String(), v.Index(i).Field(1))
		}
	}
	return types
}

// behindAll follows pointers and interfaces.
func behindAll(v reflect.Value) reflect.Value {
	for range maxPointers {
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			break
		}
		v = v.Elem()
	}
	return v
}

// encodeDocument returns v as the driver encodes a whole document.
func encodeDocument(ec bson.EncodeContext, v any) (bson.Raw, error) {
	if b, ok := v.([]byte); ok {
		v = bson.Raw(b)
	}
	doc, err := encodedCopy(func(vw bson.ValueWriter) error {
		if m, ok := v.(bson.Marshaler); ok {
			b, err := built.MarshalDocument(ec, m)
			if err != nil {
				return err
			}
			return rawCodec.EncodeValue(ec, vw, reflect.ValueOf(bson.Raw(b)))
		}
		enc, err := ec.LookupEncoder(reflect.TypeOf(v))
		if err != nil {
			return err
		}
		return enc.EncodeValue(ec, vw, reflect.ValueOf(v))
	})
	if err != nil {
		return nil, mongo.MarshalError{Value: v, Err: err}
	}
	return doc, nil
}

// updateKind tells how an update is encoded.
type updateKind uint8

const (
	documentUpdate updateKind = iota
	pipelineUpdate
	otherUpdate // the driver or the server refuses it
)

// encodeReplacement encodes a replacement as the methods of a Collection of the driver do.
func encodeReplacement(ec bson.EncodeContext, v any) (updateKind, bson.Raw, any, error) {
	doc, err := encodeDocument(ec, v)
	return documentUpdate, doc, encodedDocument(doc), err
}

// encodeUpdate encodes an update, or a replacement in a bulk write, as the driver does. It returns
// the document or the array, and what to pass to the driver for it.
func encodeUpdate(ec bson.EncodeContext, u any) (updateKind, bson.Raw, any, error) {
	document := func(b []byte) (updateKind, bson.Raw, any, error) {
		if err := bson.Raw(b).Validate(); err != nil {
			return 0, nil, nil, malformedUpdate(err)
		}
		return documentUpdate, b, encodedDocument(b), nil
	}
	switch u := u.(type) {
	case bson.D:
		return encodeReplacement(ec, u)
	case bson.Raw:
		return document(u)
	case []byte:
		return document(u)
	case bson.Marshaler:
		b, err := built.MarshalDocument(ec, u)
		if err != nil {
			return 0, nil, nil, err
		}
		return document(b)
	case bson.ValueMarshaler:
		t, b, err := built.MarshalValue(ec, u)
		if err != nil {
			return 0, nil, nil, err
		}
		if bson.Type(t) == bson.TypeEmbeddedDocument {
			return document(b)
		}
		if bson.Type(t) == bson.TypeArray {
			return pipelineUpdate, b, encodedValue{t, b}, nil
		}
		return otherUpdate, nil, encodedValue{t, b}, nil
	}
	v := reflect.ValueOf(u)
	k := v.Kind()
	if k != reflect.Slice && k != reflect.Array {
		return encodeReplacement(ec, u)
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if isDriverDocument(v.Type()) {
			return document(v.Bytes())
		}
		return otherUpdate, nil, u, nil
	}
	stages := make([]encodedDocument, v.Len())
	all := make(bson.A, v.Len())
	for i := range stages {
		stage := v.Index(i).Interface()
		if stage == nil {
			return otherUpdate, nil, u, nil
		}
		doc, err := encodeDocument(ec, stage)
		if err != nil {
			return 0, nil, nil, err
		}
		stages[i], all[i] = encodedDocument(doc), doc
	}
	_, array, _ := bson.MarshalValue(all) // of documents
	return pipelineUpdate, array, stages, nil
}

func malformedUpdate(err error) error { return fmt.Errorf("autoid: the update is malformed: %w", err) }

// isDriverDocument reports whether t is bsoncore.Document, which is not part of the driver's stable API.
func isDriverDocument(t reflect.Type) bool {
	return t.Name() == "Document" && t.PkgPath() == "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
}

// encodedValue is a value that the driver takes as it is.
type encodedValue struct {
	t byte
	b []byte
}

func (v encodedValue) MarshalBSONValue() (byte, []byte, error) { return v.t, v.b, nil }

// judgement is the decision about the filter of an upsert.
type judgement struct {
	filter encodedDocument
	id     claim
}

// judge encodes the filter of the upsert of doc, and returns an error if the upsert cannot have it.
func (c *Collection) judge(filter, doc any, index int) (*encoding, judgement, error) {
	if c.err != nil {
		return nil, judgement{}, c.err
	}
	e, err := c.contexts.encoding()
	if err != nil {
		return nil, judgement{}, err
	}
	raw, err := encodeDocument(e.ec, filter)
	if err != nil {
		return nil, judgement{}, err
	}
	id, zero, err := readFilter(raw)
	if err == nil && zero != otherForm && !c.settings.zeroIsID {
		err = c.zeroError(zero, "the filter")
	}
	if err != nil {
		return nil, judgement{}, upsertError(index, doc, err)
	}
	return e, judgement{encodedDocument(raw), id}, nil
}

// checkUpdate reports whether an operator of update sets the _id or a part of it. A zero one is an error.
func (c *Collection) checkUpdate(update bson.Raw) (carries bool, err error) {
	if err := update.Validate(); err != nil { // a value that marshals itself can be malformed
		return false, malformedUpdate(err)
	}
	elements, _ := update.Elements()
	if len(elements) == 0 || !strings.HasPrefix(elements[0].Key(), "$") {
		return true, nil // which the driver refuses
	}
	for _, op := range elements {
		if op.Key() == "$setOnInsert" {
			fields, ok := op.Value().DocumentOK()
			if !ok {
				carries = true // which the server refuses
			} else if err := fields.Validate(); err != nil {
				return false, malformedUpdate(err)
			}
		}
		for _, field := range elementsOf(op.Value()) {
			if !isIDPath(field.Key()) {
				continue
			}
			switch op.Key() {
			case "$unset", "$rename", "$pull", "$pullAll", "$pop":
				// They do nothing to a document that is not there yet, so it would get an ObjectID. The server refuses
				// them beside the id of the source.
				continue
			case "$set", "$setOnInsert", "$min", "$max":
				if form := formOfRaw(field.Value()); field.Key() == "_id" && form.isZero() && !c.settings.zeroIsID {
					return true, c.zeroError(form, op.Key())
				}
			}
			carries = true
		}
	}
	return carries, nil
}

// checkPipeline returns an error if a stage of pipeline sets a zero _id.
func (c *Collection) checkPipeline(pipeline bson.Raw) error {
	if c.settings.zeroIsID {
		return nil
	}
	for _, stage := range documentsOf(bson.RawValue{Type: bson.TypeArray, Value: pipeline}) {
		elements, _ := stage.Elements()
		for _, e := range elements {
			fields := e.Value()
			if e.Key() == "$replaceRoot" {
				doc, _ := fields.DocumentOK()
				fields = doc.Lookup("newRoot")
			}
			doc, _ := fields.DocumentOK()
			id := doc.Lookup("_id")
			if literal, ok := id.DocumentOK(); ok {
				if v, err := literal.LookupErr("$literal"); err == nil {
					id = v
				}
			}
			if form := formOfRaw(id); form.isZero() {
				return c.zeroError(form, e.Key())
			}
		}
	}
	return nil
}

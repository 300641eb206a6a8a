package autoid

import (
	"fmt"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
)

// Assign puts the next id of src into doc if the _id of doc is missing or zero, see
// [WithZeroIDAsMissing]. Otherwise it does not ask src. It is for code that must know the id before the
// insert, such as the hooks of an object-document mapper:
//
//	if err := autoid.Assign(src, &user); err != nil {
//		return err
//	}
//	_, err := users.InsertOne(ctx, user)
//
// doc is a pointer to a struct, a map with string keys, or a pointer to a [bson.D] or to such a
// map. The field of a struct must have the bson tag _id, and can be in an inline struct; nil
// pointers to inline structs are allocated. The id's type must be assignable to the type of the
// field, of the same kind ([16]byte for a UUID), or an integer that fits. A pointer field and a
// struct with a single field, such as the field types of package uuidrep, take what they hold.
//
// Errors are an [*IDError] whose Index is -1. It wraps [ErrNotAssignable] if doc has no place for
// the id, and the error of src; an id that is nil is an error, too. After an error doc is unchanged.
//
// Assign may be called by several goroutines with different documents.
func Assign(src Source, doc any) error {
	if _, err := assign(src, doc, reading{}, nil); err != nil {
		return &IDError{Index: -1, Document: doc, Err: err}
	}
	return nil
}

// assign returns the id that it put into doc, nil if doc has one. The tags of structs are read as r. The function check, if it
// is not nil, can refuse an id of the source.
func assign(src Source, doc any, r reading, check func(id any) error) (any, error) {
	p, err := findPlace(doc, r)
	if err != nil || p.taken {
		return nil, err
	}
	id, err := draw(src)
	if err != nil {
		return nil, err
	}
	if check != nil {
		if err := check(id); err != nil {
			return nil, err
		}
	}
	v, err := fit(reflect.ValueOf(id), p.of)
	if err != nil {
		return nil, err
	}
	p.set(v)
	return id, nil
}

// idPlace is the place in a document for an id.
type idPlace struct {
	taken bool // there is an id
	of    reflect.Type
	set   func(reflect.Value)
}

var idPlaceTaken = idPlace{taken: true}

func notAssignable(format string, args ...any) (idPlace, error) {
	return idPlace{}, fmt.Errorf("%w: %s", ErrNotAssignable, fmt.Sprintf(format, args...))
}

func findPlace(doc any, r reading) (idPlace, error) {
	v := reflect.ValueOf(doc)
	if _, ok := doc.(*document); ok {
		return notAssignable("it is a Document")
	}
	for range maxPointers {
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			break
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return notAssignable("it is nil")
	}
	t := v.Type()
	switch {
	case t == reflect.TypeFor[bson.Raw]() || t == reflect.TypeFor[[]byte]():
		if where, _ := rawPlacement(v.Bytes(), true); where == somewhere {
			return idPlaceTaken, nil
		}
		return notAssignable("it is encoded already")
	case t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[bson.E]():
		return placeInD(v)
	case t.Kind() == reflect.Map && hasPlainKeys(t):
		return placeInMap(v)
	case t.Kind() == reflect.Struct:
		return placeInStruct(v, r)
	default:
		return notAssignable("it is neither a struct, a map with string keys nor a bson.D")
	}
}

func placeInD(v reflect.Value) (idPlace, error) {
	of := reflect.TypeFor[any]()
	for i := range v.Len() {
		if v.Index(i).Field(0).String() != "_id" {
			continue
		}
		value := v.Index(i).Field(1)
		if !isZero(value) {
			return idPlaceTaken, nil
		}
		return idPlace{of: of, set: value.Set}, nil
	}
	if !v.CanSet() {
		return notAssignable("a bson.D needs a pointer to get an _id")
	}
	return idPlace{of: of, set: func(id reflect.Value) {
		first := reflect.Append(reflect.Zero(v.Type()), reflect.ValueOf(bson.E{Key: "_id", Value: id.Interface()}))
		v.Set(reflect.AppendSlice(first, v))
	}}, nil
}

func placeInMap(v reflect.Value) (idPlace, error) {
	t := v.Type()
	key := reflect.ValueOf("_id").Convert(t.Key())
	if id := v.MapIndex(key); id.IsValid() && !isZero(id) {
		return idPlaceTaken, nil
	}
	if v.IsNil() && !v.CanSet() {
		return notAssignable("the map is nil")
	}
	return idPlace{of: t.Elem(), set: func(id reflect.Value) {
		if v.IsNil() {
			v.Set(reflect.MakeMap(t))
		}
		v.SetMapIndex(key, id)
	}}, nil
}

func placeInStruct(v reflect.Value, r reading) (idPlace, error) {
	f := idFieldOf(v.Type(), r)
	if f.Index == nil {
		for i := range v.NumField() {
			if field := v.Type().Field(i); f.where == nowhere && field.IsExported() && strings.EqualFold(elements.TagOf(field, r.json).Name, "id") {
				return notAssignable("no field has the bson tag _id; the key of its field %s is id", field.Name)
			}
		}
		return notAssignable("no field, or more than one, has the bson tag _id")
	}
	if field, ok := f.value(v); ok && !isZero(field) {
		return idPlaceTaken, nil
	}
	if !v.CanSet() {
		return notAssignable("a struct needs a pointer to get an _id")
	}
	return idPlace{of: f.Type, set: func(id reflect.Value) { f.Target(v).Set(id) }}, nil
}

// fit returns id as a value of type t.
func fit(id reflect.Value, t reflect.Type) (reflect.Value, error) {
	if id.Kind() == reflect.Pointer && id.IsNil() {
		return id, errNilID
	}
	if v, ok := convert(id, t); ok {
		return v, nil
	}
	return id, fmt.Errorf("autoid: an id of type %v does not fit into %v", id.Type(), t)
}

func convert(id reflect.Value, t reflect.Type) (reflect.Value, bool) {
	from := id.Type()
	switch {
	case from.AssignableTo(t):
		return id, true
	case t.Kind() == reflect.Pointer:
		v, ok := convert(id, t.Elem())
		if !ok {
			return v, false
		}
		p := reflect.New(t.Elem())
		p.Elem().Set(v)
		return p, true
	case id.CanInt() && t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return id.Convert(t), !t.OverflowInt(id.Int())
	case id.CanUint() && t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return id.Convert(t), !t.OverflowUint(id.Uint())
	case from.Kind() == t.Kind() && from.ConvertibleTo(t):
		return id.Convert(t), true
	case t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).IsExported():
		v, ok := convert(id, t.Field(0).Type)
		if !ok {
			return v, false
		}
		s := reflect.New(t).Elem()
		s.Field(0).Set(v)
		return s, true
	default:
		return id, false
	}
}

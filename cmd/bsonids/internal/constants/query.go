package constants

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// query replaces the constants of a query, whose fields are in f.
func (w *walker) query(v bson.RawValue, f field) any {
	if v.Type != bson.TypeEmbeddedDocument {
		return v
	}
	return w.fields(v, func(key string, v bson.RawValue) any {
		switch {
		case key == "$and" || key == "$or":
			return w.each(v, func(v bson.RawValue) any { return w.query(v, f) })
		case key == "$nor":
			return w.not(func() any { return w.each(v, func(v bson.RawValue) any { return w.query(v, f) }) })
		case key == "$expr":
			return w.expression(v, f, f.unknown())
		case key == "$jsonSchema":
			return w.schema(v, f)
		case strings.HasPrefix(key, "$"): // $comment, $text, $where
			return v
		}
		return w.condition(v, f.in(key))
	})
}

// each is elements for a value that may be none.
func (w *walker) each(v bson.RawValue, of func(v bson.RawValue) any) any {
	if v.Type != bson.TypeArray {
		return v
	}
	return w.elements(v, of)
}

// condition replaces the constants of the condition of a field.
func (w *walker) condition(v bson.RawValue, f field) any {
	if !operators(v) {
		return w.value(v, f)
	}
	return w.fields(v, func(key string, v bson.RawValue) any {
		switch {
		case key == "$not":
			return w.not(func() any { return w.condition(v, f) })
		case key == "$elemMatch" && operators(v) && !logical(v):
			return w.condition(v, f)
		case key == "$elemMatch":
			return w.query(v, f)
		case key == "$all":
			return w.each(v, func(v bson.RawValue) any { return w.condition(v, f) })
		case w.refuses(key, v):
			return v
		}
		return w.value(v, f)
	})
}

// logical reports whether the operators of a document are those of whole queries.
func logical(v bson.RawValue) bool {
	e, err := v.Document().IndexErr(0)
	return err == nil && (e.Key() == "$and" || e.Key() == "$or" || e.Key() == "$nor" || e.Key() == "$expr")
}

// schema replaces the constants of a JSON Schema of the values of a field.
func (w *walker) schema(v bson.RawValue, f field) any {
	if v.Type == bson.TypeArray {
		return w.elements(v, func(v bson.RawValue) any { return w.schema(v, f) })
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return v
	}
	return w.fields(v, func(key string, v bson.RawValue) any {
		switch key {
		case "enum":
			return w.value(v, f)
		case "properties":
			if v.Type == bson.TypeEmbeddedDocument {
				return w.fields(v, func(name string, v bson.RawValue) any { return w.schema(v, f.in(name)) })
			}
		case "items", "additionalItems", "allOf", "anyOf", "oneOf", "not":
			return w.schema(v, f)
		case "patternProperties", "dependencies":
			if v.Type == bson.TypeEmbeddedDocument {
				return w.fields(v, func(_ string, v bson.RawValue) any { return w.schema(v, f.unknown()) })
			}
		case "additionalProperties":
			return w.schema(v, f.unknown())
		}
		return v
	})
}

// comparisons have operators of expressions whose arguments are compared with each other.
var comparisons = map[string]bool{"$eq": true, "$ne": true, "$gt": true, "$gte": true, "$lt": true, "$lte": true, "$cmp": true, "$in": true,
	"$setEquals": true, "$setIntersection": true, "$setIsSubset": true, "$setDifference": true, "$indexOfArray": true, "$ifNull": true}

// expression replaces the constants of an expression about documents in of. They are compared with f.
func (w *walker) expression(v bson.RawValue, of, f field) any {
	switch v.Type {
	case bson.TypeString:
		if s := v.StringValue(); strings.HasPrefix(s, "$") {
			return v
		}
		return w.value(v, f)
	case bson.TypeArray:
		return w.elements(v, func(v bson.RawValue) any { return w.expression(v, of, f) })
	case bson.TypeEmbeddedDocument:
		return w.fields(v, func(key string, v bson.RawValue) any {
			switch {
			case key == "$literal":
				return w.value(v, f)
			case comparisons[key] && v.Type == bson.TypeArray:
				return w.expression(v, of, compared(v, of))
			}
			return w.expression(v, of, of.unknown())
		})
	}
	return w.value(v, f)
}

// compared returns the only field among the arguments of an operator.
func compared(v bson.RawValue, of field) (f field) {
	args, err := v.Array().Values()
	if err != nil {
		return f
	}
	for _, a := range args {
		path, ok := a.StringValueOK()
		for _, root := range []string{"$$ROOT.", "$$CURRENT."} {
			if rest, is := strings.CutPrefix(path, root); is {
				path = "$" + rest
			}
		}
		path, is := strings.CutPrefix(path, "$")
		switch {
		case !ok || !is:
		case f.path != "" || strings.HasPrefix(path, "$"): // a variable
			return field{}
		default:
			f = of.in(path)
		}
	}
	return f
}

// most is the maximum number of views that show each other, of MongoDB.
const most = 20

// source returns the documents that a collection or a view shows.
func (w *walker) source(name string, depth int) field {
	for _, d := range w.all {
		if d.Of == View && d.Name == name && depth < most {
			look := &walker{all: w.all, by: func(Constant) *bson.RawValue { return nil }}
			_, out := look.pipeline(d.Is, w.source(d.On, depth+1))
			return out
		}
	}
	return field{collection: name, told: true}
}

// pipeline replaces the constants of the stages of a pipeline about documents in of, and returns what they make of them.
func (w *walker) pipeline(v bson.RawValue, of field) (any, field) {
	if v.Type != bson.TypeArray {
		return v, field{}
	}
	out := w.elements(v, func(v bson.RawValue) any {
		if v.Type != bson.TypeEmbeddedDocument {
			return v
		}
		return w.fields(v, func(stage string, v bson.RawValue) any {
			by := w.stage(stage, v, of)
			of = of.after(stage, v)
			return by
		})
	})
	return out, of
}

// stage replaces the constants of one stage.
func (w *walker) stage(name string, v bson.RawValue, of field) any {
	switch name {
	case "$match":
		return w.query(v, of)
	case "$lookup", "$unionWith", "$graphLookup":
		if v.Type != bson.TypeEmbeddedDocument {
			return v
		}
		from, ok := v.Document().Lookup("from").StringValueOK()
		if coll, is := v.Document().Lookup("coll").StringValueOK(); is {
			from, ok = coll, is
		}
		in := of.unknown()
		if ok {
			in = w.source(from, 0)
		}
		return w.fields(v, func(key string, v bson.RawValue) any {
			switch key {
			case "pipeline":
				by, _ := w.pipeline(v, in)
				return by
			case "restrictSearchWithMatch":
				return w.query(v, in)
			case "startWith", "let":
				return w.expression(v, of, of.unknown())
			}
			return v
		})
	case "$facet":
		if v.Type != bson.TypeEmbeddedDocument {
			return v
		}
		return w.fields(v, func(_ string, v bson.RawValue) any {
			by, _ := w.pipeline(v, of)
			return by
		})
	case "$geoNear":
		if v.Type != bson.TypeEmbeddedDocument {
			return v
		}
		return w.fields(v, func(key string, v bson.RawValue) any {
			if key == "query" {
				return w.query(v, of)
			}
			return v
		})
	}
	return w.expression(v, of, of.unknown())
}

// after returns what a stage makes of documents.
func (f field) after(stage string, v bson.RawValue) field {
	switch stage {
	case "$match", "$sort", "$limit", "$skip", "$sample", "$unset", "$unwind", "$redact":
		return f
	case "$addFields", "$set", "$lookup", "$graphLookup", "$project":
	default:
		return f.unknown()
	}
	doc, ok := v.DocumentOK()
	elements, err := doc.Elements()
	if !ok || err != nil {
		return f.unknown()
	}
	made := make(map[string]bool)
	for top := range f.made {
		made[top] = true
	}
	for _, e := range elements {
		top, _, _ := strings.Cut(e.Key(), ".")
		switch v := e.Value(); {
		case stage == "$lookup" || stage == "$graphLookup":
			if as, ok := v.StringValueOK(); ok && e.Key() == "as" {
				top, _, _ = strings.Cut(as, ".")
				made[top] = true
			}
		case stage == "$project" && (v.IsNumber() || v.Type == bson.TypeBoolean): // it is there, or not
		default:
			made[top] = true
		}
	}
	f.made = made
	return f
}

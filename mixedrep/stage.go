package mixedrep

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const inStage = "the stage does not filter; " + explicitly

// stage rewrites the filters of a stage of an aggregation pipeline.
func (p pair) stage(path string) (any, error) {
	return p.fields(path, func(m member, at string) (any, error) {
		switch m.key {
		case "$match":
			if m.written.Type == bson.TypeEmbeddedDocument {
				return m.filter(at)
			}
		case "$facet":
			return m.fields(at, func(m member, at string) (any, error) { return m.pipeline(at) })
		case "$lookup", "$unionWith":
			return m.fields(at, func(m member, at string) (any, error) {
				if m.key == "pipeline" {
					return m.pipeline(at)
				}
				return m.plain(at, inStage)
			})
		case "$geoNear":
			return m.fields(at, filterIn("query"))
		case "$graphLookup":
			return m.fields(at, filterIn("restrictSearchWithMatch"))
		}
		return m.plain(at, inStage)
	})
}

// filterIn rewrites the filter in the option of a stage.
func filterIn(option string) func(member, string) (any, error) {
	return func(m member, at string) (any, error) {
		if m.key == option && m.written.Type == bson.TypeEmbeddedDocument {
			return m.filter(at)
		}
		return m.plain(at, inStage)
	}
}

func (p pair) pipeline(path string) (any, error) {
	return p.each(path, func(p pair, at string) (any, error) {
		if p.written.Type != bson.TypeEmbeddedDocument {
			return p.plain(at, inStage)
		}
		return p.stage(at)
	})
}

// fields rewrites each field of a document. It leaves what is not a document, such as the string of
// $unionWith.
func (p pair) fields(path string, rewrite func(member, string) (any, error)) (any, error) {
	if p.written.Type != bson.TypeEmbeddedDocument {
		return p.plain(path, inStage)
	}
	ms, err := p.members()
	if err != nil {
		return nil, err
	}
	d := make(bson.D, len(ms))
	for i, m := range ms {
		v, err := rewrite(m, join(path, m.key))
		if err != nil {
			return nil, err
		}
		d[i] = bson.E{Key: m.key, Value: v}
	}
	return d, nil
}

// checkUpdate refuses the operators of an update that compare with what is stored, if they hold a
// UUID.
func (p pair) checkUpdate() error {
	ms, err := p.members()
	if err != nil {
		return err
	}
	for _, m := range ms {
		switch m.key {
		case "$pull", "$pullAll":
			_, err = m.plain(m.key, "it removes one of the representations; give $pull an $in of mixedrep.Values")
		case "$addToSet":
			_, err = m.plain(m.key, "it adds the second representation of a UUID that is there; "+
				"use $push, and mixedrep.MatchNone in the filter")
		case "$min", "$max":
			_, err = m.plain(m.key, "it compares with a stored value of either representation; "+explicitly)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// updateStage refuses a UUID in an expression of an update that is a pipeline. The value of a field
// is written, as with $set.
func (p pair) updateStage() (bson.Raw, error) {
	ms, err := p.members()
	if err != nil {
		return nil, err
	}
	for _, m := range ms {
		if err := m.checkWritten(m.key); err != nil {
			return nil, err
		}
	}
	return p.written.Value, nil
}

// checkWritten returns an error if p holds a UUID below an operator.
func (p pair) checkWritten(path string) error {
	switch p.written.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
	default:
		_, err := p.hasUUID()
		return err
	}
	ms, err := p.members()
	if err != nil {
		return err
	}
	for _, m := range ms {
		at := join(path, m.key)
		if strings.HasPrefix(m.key, "$") && m.key != "$literal" {
			if _, err := m.plain(at, oneValue); err != nil {
				return err
			}
			continue
		}
		if err := m.checkWritten(at); err != nil {
			return err
		}
	}
	return nil
}

// projection rewrites the $elemMatch of a projection, which is a filter.
func (p pair) projection() (any, error) {
	return p.fields("", func(m member, at string) (any, error) {
		return m.fields(at, func(m member, at string) (any, error) {
			if m.key == "$elemMatch" {
				return m.elemMatch(at)
			}
			return m.plain(at, oneValue)
		})
	})
}

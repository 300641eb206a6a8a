package apply

import (
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Check returns a usage error if the conversion is not possible.
func (o *Options) Check() error {
	conv, id := o.Conversion, o.ID
	switch {
	case id.Collection == record.Name || id.Into == record.Name:
		return failure.Usagef("cannot convert %s, the record of conversions", record.Name)
	case id.Into != "" && id.Part != "" && conv.MergesIDs():
		return failure.Usagef("a part cannot be copied if text in _id is converted: two parts may have documents that get the same _id")
	}
	return nil
}

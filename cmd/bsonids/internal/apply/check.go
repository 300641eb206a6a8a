package apply

import (
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Check returns a usage error if the conversion is not possible, or if it lacks a safeguard.
func (o *Options) Check() error {
	conv, id := o.Conversion, o.ID
	switch {
	case id.Into == id.Collection:
		return failure.Usagef("--into must be another collection than --collection")
	case id.Into != "" && o.UndoLog != "":
		return failure.Usagef("--undo-log cannot be used with --into, which does not change the collection")
	case o.Retry != "" && (id.Into != "" || id.Part != "" || id.Query != ""):
		return failure.Usagef("--retry cannot be used with --into, --part or --query")
	case id.Query != "" && id.Into != "":
		return failure.Usagef("--query cannot be used with --into, which copies the whole collection")
	case id.Collection == record.Name || id.Into == record.Name:
		return failure.Usagef("cannot convert %s, the record of conversions", record.Name)
	case id.Into != "" && id.Part != "" && conv.MergesIDs():
		return failure.Usagef("--part cannot be used with --into and --from %s if _id is converted: two parts may have documents that get the same _id", conv.From.Name)
	case o.Write && id.Into == "" && o.UndoLog == "":
		return failure.Usagef("--undo-log is required: without it, nobody could restore the values")
	}
	return nil
}

package record

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// kindCutover is the kind of the documents of cutovers. The runs that carry out a cutover have documents of their
// own, of the kinds [Switch] and [SwitchBack].
const kindCutover = "cutover"

// cutoverEnd is the end of the _id of a cutover, behind its name.
const cutoverEnd = "/cutover"

// The states of a cutover.
const (
	Comparing   = "comparing"    // the collections are compared while services write; nothing is fenced
	Fencing     = "fencing"      // the collections are fenced, and what changed is compared; none has been renamed
	Switching   = "switching"    // the collections are renamed
	Switched    = "switched"     // every new collection is in place, and the fence waits for its release
	RollingBack = "rolling back" // the old collections are put back
	Releasing   = "releasing"    // the settings of the new collections are restored
	RolledBack  = "rolled back"  // the end: nothing is fenced, and every old collection is in place
	Released    = "released"     // the end: nothing is fenced, and every new collection is in place
)

// KeptName returns the name under which a cutover puts the old collection of a name away.
func KeptName(collection string) string { return collection + "_before_cutover" }

// Cutover is the document of a cutover, which puts new collections in the place of others.
type Cutover struct {
	Saved `bson:",inline"` // the _id is NAME/cutover
	// Reason is why the cutover is rolled back.
	Reason string `bson:"reason,omitempty"`

	Collections []Exchange `bson:"exchanges"`

	// Stream is how far the changes are known that were made since the collections were compared. If it
	// is nil behind the fence, everything is compared there, and Untracked is why.
	Stream    *Position `bson:"stream,omitempty"`
	Untracked string    `bson:"untracked,omitempty"`
	// FencedAt is the time before the fence was set, nil if it was lifted again, InPlaceAt that when all new collections were in
	// place, and FreedAt that when the server accepted writes again.
	FencedAt  *time.Time `bson:"fencedAt,omitempty"`
	InPlaceAt *time.Time `bson:"inPlaceAt,omitempty"`
	FreedAt   *time.Time `bson:"freedAt,omitempty"`
}

// Position is a position in the change stream of a database. All documents that changed before it, and
// since the collections were compared, were compared again.
type Position struct {
	Token bson.Raw `bson:"token"`
	// Pending are documents that did not agree when they were compared last.
	Pending []Pending `bson:"pending,omitempty"`
}

// Pending is the _id of a document of a collection or of its copy.
type Pending struct {
	Collection string        `bson:"collection"` // the name of the old one
	ID         bson.RawValue `bson:"id"`
	Why        string        `bson:"why"`
}

// Equal reports whether both are the same document.
func (p Pending) Equal(o Pending) bool { return p.Collection == o.Collection && p.ID.Equal(o.ID) }

// Exchange is how one collection is put in the place of another.
type Exchange struct {
	Name string `bson:"name"` // of the old collection, and then of the new one
	New  string `bson:"new"`  // of the new collection until it is in place
	Kept string `bson:"kept"` // of the old collection after that

	Run    string          `bson:"run"`               // _id of the run that made the new collection
	Maker  string          `bson:"maker,omitempty"`   // the conversion that made it
	OldID  *bson.Binary    `bson:"oldUUID,omitempty"` // UUIDs of the collections, if the server reports them
	NewID  *bson.Binary    `bson:"newUUID,omitempty"`
	KeptID *bson.Binary    `bson:"keptUUID,omitempty"` // UUID of the old collection after it was put away
	OldHad server.Settings `bson:"oldHad"`             // before the fence
	NewHad server.Settings `bson:"newHad"`

	// Checked is set when all documents were compared since the stream of the cutover began.
	Checked bool `bson:"checked,omitempty"`
	// LeftAt and InAt are the times of the two renames.
	LeftAt *time.Time `bson:"leftAt,omitempty"`
	InAt   *time.Time `bson:"inAt,omitempty"`
	// Unfenced is how long the new one had no fence because the server dropped it, in milliseconds.
	Unfenced int64 `bson:"unfenced"`
	// Back is set before the new collection is renamed away again.
	Back bool `bson:"back,omitempty"`
	// Between are collections that other programs created under the name while no collection had it.
	Between []Between `bson:"between,omitempty"`

	Compared Compared `bson:"compared"`
}

// Between is a collection that another program created between the two renames. Name is its name
// after it was renamed.
type Between struct {
	Name      string `bson:"name" json:"collection"`
	Merged    bool   `bson:"merged" json:"merged"` // its documents were inserted, except those that conflict
	Documents int64  `bson:"documents" json:"documents"`
	Conflicts int64  `bson:"conflicts" json:"conflicts"`
}

// MadeBy reports whether one of the conversions made the new collection. A later migration may have made one of
// the same name. If no conversions are known, any may be meant.
func (x Exchange) MadeBy(conversions []string) bool {
	return len(conversions) == 0 || slices.Contains(conversions, x.Maker)
}

// Gap returns how long no collection had the name.
func (x Exchange) Gap() time.Duration {
	if x.LeftAt == nil || x.InAt == nil {
		return 0
	}
	return x.InAt.Sub(*x.LeftAt)
}

// Compared counts the documents of the comparisons of one collection.
type Compared struct {
	Documents int64 `bson:"documents" json:"documents"` // of the last complete comparison
	Inserted  int64 `bson:"inserted" json:"documentsInserted"`
	Replaced  int64 `bson:"replaced" json:"documentsReplaced"`
	Deleted   int64 `bson:"deleted" json:"documentsDeleted"`
	// Behind counts the documents that were compared behind the fence, and before the first rename.
	Behind int64 `bson:"behind" json:"documentsComparedBehindFence"`
	// Late counts the documents that were compared again because they may have changed after the
	// last complete comparison.
	Late int64 `bson:"late" json:"documentsComparedBetween"`
	// Written counts the documents that were inserted or changed in the new collection in spite of the fence.
	Written int64 `bson:"written" json:"documentsWrittenInSpite"`
}

// Conflicts returns the number of documents that were written to new collections in spite of the fence, or that are in none of
// the collections in place.
func (c *Cutover) Conflicts() (n int64) {
	for _, x := range c.Collections {
		n += x.Compared.Written
		for _, b := range x.Between {
			n += b.Conflicts
		}
	}
	return n
}

// Untouched reports whether no fence is set: the collections have their names and settings.
func (c *Cutover) Untouched() bool { return c.FencedAt == nil }

// Names returns the names of the old collections.
func (c *Cutover) Names() []string {
	var names []string
	for _, x := range c.Collections {
		names = append(names, x.Name)
	}
	return names
}

// Refused returns for how long the server refused writes until the new collections were in place, and
// in total until now if it still does. Both are zero if nothing was fenced, or not since the fence was lifted.
func (c *Cutover) Refused(now time.Time) (untilInPlace, total time.Duration) {
	if c.FencedAt == nil {
		return 0, 0
	}
	if c.InPlaceAt != nil {
		untilInPlace = c.InPlaceAt.Sub(*c.FencedAt)
	}
	if c.FreedAt != nil {
		now = *c.FreedAt
	}
	return untilInPlace, now.Sub(*c.FencedAt)
}

// Conversion returns the name of the cutover, which its runs have.
func (c *Cutover) Conversion() string { return strings.TrimSuffix(c.ID, cutoverEnd) }

// NewCutover returns a cutover of the collections in the state [Comparing].
func NewCutover(collections []Exchange, version string) *Cutover {
	return &Cutover{Saved: Saved{ID: NewID() + cutoverEnd, Kind: kindCutover, State: Comparing, By: whoAmI(version)}, Collections: collections}
}

// Cutovers returns the cutovers in the record, sorted by when they began.
func Cutovers(ctx context.Context, db *mongo.Database) ([]*Cutover, error) {
	return find[*Cutover](ctx, collection(db), bson.D{{Key: "kind", Value: kindCutover}}, "begun")
}

// Open reports whether the cutover has not ended.
func (c *Cutover) Open() bool { return c.State != Released && c.State != RolledBack }

// CutoverByID returns the cutover of the name that its runs have, or nil if there is none.
func CutoverByID(ctx context.Context, db *mongo.Database, id string) (*Cutover, error) {
	all, err := find[*Cutover](ctx, collection(db), bson.D{{Key: "kind", Value: kindCutover}, {Key: "_id", Value: id + cutoverEnd}}, "begun")
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// CutoverOf returns the cutover that has not ended and that uses a collection with one of the names,
// or nil if there is none.
func CutoverOf(ctx context.Context, db *mongo.Database, names ...string) (*Cutover, error) {
	all, err := Cutovers(ctx, db)
	return Using(all, names...), err
}

// Using returns the one of the cutovers that has not ended and that uses a collection with one of the names, or nil if there is
// none. An empty name is no name.
func Using(all []*Cutover, names ...string) *Cutover {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" })
	for _, c := range all {
		if !c.Open() {
			continue
		}
		for _, x := range c.Collections {
			if slices.Contains(names, x.Name) || slices.Contains(names, x.New) || slices.Contains(names, x.Kept) {
				return c
			}
		}
	}
	return nil
}

// Last returns the last of the cutovers that is of one of the collections, and unless copies is nil, of its copy
// that one of the conversions has made.
func Last(all []*Cutover, names, copies, conversions []string) *Cutover {
	for _, c := range slices.Backward(all) {
		if slices.ContainsFunc(c.Collections, func(x Exchange) bool {
			i := slices.Index(names, x.Name)
			return i >= 0 && (copies == nil || copies[i] == x.New && x.MadeBy(conversions))
		}) {
			return c
		}
	}
	return nil
}

// Kept returns the collections that cutovers have left beside those in place, with what they are: old
// collections, and those that other programs created between two renames.
func Kept(ctx context.Context, db *mongo.Database) (kept []KeptCollection, err error) {
	all, err := Cutovers(ctx, db)
	for _, c := range all {
		for _, x := range c.Collections {
			if x.InAt != nil && !x.Back && c.State != RolledBack {
				kept = append(kept, KeptCollection{x.Kept, x.KeptID, "the old collection of " + x.Name + ", which a cutover has put away; its copy is in place"})
			}
			for _, b := range x.Between {
				if b.Merged {
					kept = append(kept, KeptCollection{b.Name, nil, "a program created it during the cutover of " + x.Name + "; its documents were inserted there"})
				}
			}
		}
	}
	return kept, err
}

// KeptCollection is a collection that a cutover has left.
type KeptCollection struct {
	Name string
	ID   *bson.Binary // nil if it is not known
	What string
}

// Save inserts or replaces the document of the cutover, whose collections must be locked. It can be called again
// after an error. The error wraps [ErrTakenOver] if another program changed the document since it was read.
func (c *Cutover) Save(ctx context.Context, db *mongo.Database) error { return c.save(ctx, db, c) }

// Made reports whether the run has written to the copy with the UUID, as opposed to another collection
// of its name. The UUID is nil on a server that reports none. A server may have changed the UUID in a cutover that was rolled back.
func (r *Run) Made(uuid *bson.Binary, cutovers []*Cutover) bool {
	if uuid == nil || r.IntoUUID != nil && r.IntoUUID.Equal(*uuid) {
		return true
	}
	return slices.ContainsFunc(cutovers, func(c *Cutover) bool {
		return c.State == RolledBack && slices.ContainsFunc(c.Collections, func(x Exchange) bool {
			return x.Run == r.ID && x.NewID != nil && x.NewID.Equal(*uuid)
		})
	})
}

// Copies returns the last run of the collection into each new one, in the order in which they began, without their
// decisions.
func Copies(ctx context.Context, db *mongo.Database, name string) ([]*Run, error) {
	runs, err := read(ctx, collection(db), name)
	if err != nil {
		return nil, err
	}
	var out []*Run
	for _, r := range runs {
		if r.Kind != Convert || r.Into == "" {
			continue
		}
		out = slices.DeleteFunc(out, func(o *Run) bool { return o.Into == r.Into })
		out = append(out, r)
	}
	return out, nil
}

// RunOf returns the run with the _id.
func RunOf(ctx context.Context, db *mongo.Database, id string) (*Run, error) {
	var r Run
	err := collection(db).FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&r)
	return &r, err
}

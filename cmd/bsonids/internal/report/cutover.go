package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Cutover is what a cutover did, or would do.
type Cutover cutover.Result

// planned is the state of a cutover that has not begun.
const planned = "planned"

func (c Cutover) state() string {
	if c.Token == "" {
		return planned
	}
	return c.State
}

// refused returns for how long the server refused writes: until the new collections were in place, or
// else until the end.
func (c Cutover) refused() time.Duration {
	untilInPlace, total := c.Refused(c.Updated)
	if c.state() == record.Switched {
		return untilInPlace
	}
	return total
}

type cutoverExchange struct {
	Collection string       `json:"collection"`
	New        string       `json:"newCollection"`
	Kept       string       `json:"keptAs"`
	Pairs      []kinds.Pair `json:"pairs"`
	record.Compared
	Gap      int64            `json:"gapMilliseconds"`
	Unfenced int64            `json:"unfencedMilliseconds"`
	Between  []record.Between `json:"createdBetween"`
}

func (c Cutover) document() any {
	exchanges := []cutoverExchange{}
	for _, x := range c.Collections {
		conv := c.Conversions[x.Name]
		exchanges = append(exchanges, cutoverExchange{x.Name, x.New, x.Kept, conv.Pairs(), x.Compared, x.Gap().Milliseconds(), x.Unfenced, append([]record.Between{}, x.Between...)})
	}
	release := ""
	if c.state() == record.Switched {
		release = c.Release
	}
	return struct {
		Database    string            `json:"database"`
		Written     bool              `json:"written"`
		State       string            `json:"state"`
		Reason      string            `json:"reason,omitempty"`
		Release     string            `json:"release,omitempty"`
		Refused     int64             `json:"refusedMilliseconds"`
		Untracked   string            `json:"comparedAllBehindFence,omitempty"`
		Files       []string          `json:"files,omitempty"`
		Collections []cutoverExchange `json:"collections"`
	}{c.Database, c.Written, c.state(), c.Reason, release, c.refused().Milliseconds(), c.Untracked, c.Files, exchanges}
}

// Text writes what a cutover did, or would do.
func (c Cutover) Text(w io.Writer) {
	fmt.Fprintf(w, "%s: cutover of %d collections%s\n\n", c.Database, len(c.Collections), dry(c.Written))
	list(w, c.Collections, func(x record.Exchange) []any {
		gap, n := "·", x.Compared
		if x.InAt != nil {
			gap = fmt.Sprintf("%d ms", x.Gap().Milliseconds())
		}
		return []any{terminal.Cell(x.Name), terminal.Cell(x.New), terminal.Cell(x.Kept), n.Documents, n.Inserted, n.Replaced, n.Deleted, gap}
	}, "collection", "new", "kept as", "documents", "inserted", "replaced", "deleted", "gap")
	if c.RollBack {
		fmt.Fprintln(w, "\nDeleted are documents of the old collections that were deleted from new ones in place.")
	} else {
		fmt.Fprintln(w, "\nInserted, replaced and deleted are documents of the new collections that did not agree with the old ones.")
	}
	for _, x := range c.Collections {
		if x.Compared.Late > 0 {
			fmt.Fprintf(w, "%s: %d documents were compared again between the two renames.\n", x.Name, x.Compared.Late)
		}
		if x.Unfenced > 0 {
			fmt.Fprintf(w, "%s: the server dropped the fence at the rename; the new collection had none for %d ms.\n", x.Name, x.Unfenced)
		}
		switch n := x.Compared.Written; {
		case n == 0:
		case c.state() == record.RolledBack:
			fmt.Fprintf(w, "%s: %d documents that were inserted or changed in the new collection in spite of the fence are as they were there only in %s.\n", x.Name, n, x.New)
		default:
			fmt.Fprintf(w, "%s: %d documents were inserted or changed in the new collection in spite of the fence.\n", x.Name, n)
		}
		for _, b := range x.Between {
			if b.Merged {
				fmt.Fprintf(w, "%s: a program created a collection between the two renames. It is kept as %s: %d documents, of which %d conflict with others and were not inserted.\n",
					x.Name, b.Name, b.Documents, b.Conflicts)
			}
		}
	}
	for _, path := range c.Files {
		fmt.Fprintf(w, "Documents that the old collection lacks are in %s.\n", path)
	}
	if c.FencedAt != nil && c.Written {
		behind := int64(0)
		for _, x := range c.Collections {
			behind += x.Compared.Behind
		}
		fmt.Fprintf(w, "%d documents were compared while writes were refused. ", behind)
		if c.state() == record.Switched {
			fmt.Fprintf(w, "That took %s until the new collections were in place, and lasts until the release.\n", c.refused().Round(time.Millisecond))
		} else {
			fmt.Fprintf(w, "Writes were refused for %s.\n", c.refused().Round(time.Millisecond))
		}
	}
	fmt.Fprintln(w)
	switch state := c.state(); {
	case state == planned:
		fmt.Fprintln(w, "Add --write to fence, compare and exchange the collections.")
	case c.RollBack && !c.Written:
		fmt.Fprintf(w, "The cutover is in the state %q. Add --write to roll it back.\n", state)
	case state == record.Switched:
		fmt.Fprintf(w, "The new collections are in place, and the server refuses writes to them. Switch the services, and then run:\n%s\n", c.Release)
		fmt.Fprintln(w, "The release is the point of no return: until then, bsonids cutover --roll-back and bsonids undo put the old collections back.")
	case state == record.RolledBack:
		fmt.Fprintln(w, "The cutover was rolled back: the old collections are in place, with their validators. The new ones are kept under the names that they had.")
	case !c.Written:
		fmt.Fprintf(w, "The cutover is in the state %q. Add --write to continue it.\n", state)
	default:
		fmt.Fprintf(w, "The cutover is in the state %q.\n", state)
	}
}

// drop returns the command for mongosh that drops a collection of a database.
func drop(database, name string) string {
	quote := func(s string) string {
		b, _ := json.Marshal(s)
		return string(b)
	}
	return fmt.Sprintf("db.getSiblingDB(%s).getCollection(%s).drop()", quote(database), quote(name))
}

type releasedCollection struct {
	Collection string `json:"collection"`
	Restored   bool   `json:"restored"`
	Kept       string `json:"keptAs"`
	Drop       string `json:"mongosh"`
}

// Released is what a command did to release the fence.
type Released cutover.Result

func (c Released) document() any {
	out := []releasedCollection{}
	for _, x := range c.Collections {
		out = append(out, releasedCollection{x.Name, (c.Written || c.Again) && !slices.Contains(c.Left, x.Name), x.Kept, drop(c.Database, x.Kept)})
	}
	_, total := c.Refused(c.Updated)
	return struct {
		Database    string               `json:"database"`
		Written     bool                 `json:"written"`
		State       string               `json:"state"`
		ReleasedAt  *time.Time           `json:"releasedAt,omitempty"`
		Refused     int64                `json:"refusedMilliseconds"`
		Collections []releasedCollection `json:"collections"`
	}{c.Database, c.Written, c.State, c.FreedAt, total.Milliseconds(), out}
}

// Text writes what a command did to release the fence.
func (c Released) Text(w io.Writer) {
	switch {
	case c.Again:
		fmt.Fprintf(w, "%s: %s was released at %s.\n", c.Database, strings.Join(c.Names(), ", "), c.FreedAt.UTC().Format("2006-01-02 15:04:05 MST"))
	case c.Written:
		fmt.Fprintf(w, "%s: the new collections have the validators that they had before the cutover.\n", c.Database)
		if _, total := c.Refused(c.Updated); total > 0 {
			fmt.Fprintf(w, "Writes were refused for %s.\n", total.Round(time.Millisecond))
		}
	default:
		fmt.Fprintf(w, "%s: dry run, nothing was changed. Add --write to restore the validators of the new collections.\n"+
			"That is the point of no return: until then, bsonids cutover --roll-back puts the old collections back.\n", c.Database)
	}
	for _, name := range c.Left {
		fmt.Fprintf(w, "%s: another program has changed the validator, and it was left as it is.\n", name)
	}
	fmt.Fprintln(w, "\nThe old collections are kept as they were. When nobody needs them any more, drop them in mongosh:")
	for _, x := range c.Collections {
		fmt.Fprintln(w, drop(c.Database, x.Kept))
		for _, b := range x.Between {
			if b.Merged {
				fmt.Fprintln(w, drop(c.Database, b.Name))
			}
		}
	}
}

package privilege

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// Granted is what the user of a connection may do.
type Granted struct{ privileges []privilege }

// privilege is one of a user: the actions on what the resource matches.
type privilege struct {
	Resource struct {
		Any        bool    `bson:"anyResource"`
		Database   *string `bson:"db"`
		Collection *string `bson:"collection"`
	} `bson:"resource"`
	Actions []string `bson:"actions"`
}

// limit is the time that the server has to answer.
const limit = 10 * time.Second

// Of returns what the user of the client may do. It is nil if that is not known: nobody is authenticated, or the server
// does not tell. The error is that of the context.
func Of(ctx context.Context, client *mongo.Client) (*Granted, error) {
	var is struct {
		AuthInfo struct {
			Users      []bson.RawValue `bson:"authenticatedUsers"`
			Privileges []privilege     `bson:"authenticatedUserPrivileges"`
		} `bson:"authInfo"`
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := client.Database("admin").RunCommand(patience.Undated(limited), bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}}).Decode(&is)
	if err != nil || len(is.AuthInfo.Users) == 0 || len(is.AuthInfo.Privileges) == 0 { // a user without any privilege cannot ask for this
		return nil, ctx.Err()
	}
	return &Granted{is.AuthInfo.Privileges}, nil
}

// has reports whether the user may do something. A resource matches as in MongoDB: without a collection, all of a
// database but those of the system, and the database itself; without a database, collections of this name in each, or with
// neither, all but those of the databases local and config. A cluster, or the buckets of a time series, match no other
// collection.
func (g *Granted) has(r resource, action string) bool {
	system := strings.HasPrefix(r.collection, "system.")
	return slices.ContainsFunc(g.privileges, func(p privilege) bool {
		if !slices.Contains(p.Actions, action) && !slices.Contains(p.Actions, "anyAction") {
			return false
		}
		if p.Resource.Any {
			return true
		}
		if p.Resource.Database == nil || p.Resource.Collection == nil {
			return false
		}
		switch db, coll := *p.Resource.Database, *p.Resource.Collection; {
		case db == "" && coll == "":
			return !system && r.database != "local" && r.database != "config"
		case coll == "":
			return !system && r.database == db
		case db == "":
			return r.collection == coll
		default:
			return r == resource{db, coll}
		}
	})
}

// Enforced reports whether the server refuses what is not granted: one without access control also knows who is
// authenticated. It sends a command that the user may not send, about a collection that does not exist, so that it changes
// nothing. If there is none of these, or the server does not answer, it is true. The error is that of the context.
func (g *Granted) Enforced(ctx context.Context, db *mongo.Database) (bool, error) {
	const absent = "bsonids.absent"
	none := bson.D{{Key: "_id", Value: bson.NewObjectID()}}
	for _, c := range []struct {
		action  string
		command bson.D
	}{
		{"collMod", bson.D{{Key: "collMod", Value: absent}}},
		{"listIndexes", bson.D{{Key: "listIndexes", Value: absent}}},
		{"find", bson.D{{Key: "find", Value: absent}, {Key: "filter", Value: none}, {Key: "singleBatch", Value: true}}},
		{"remove", bson.D{{Key: "delete", Value: absent}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: none}, {Key: "limit", Value: 1}}}}}},
	} {
		if g.has(resource{db.Name(), absent}, c.action) {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := db.RunCommand(patience.Undated(limited), c.command).Err()
		return err != nil && !failure.Means(err, failure.Missing), ctx.Err()
	}
	return true, nil
}

// lack is an action that is not granted.
type lack struct {
	on     resource
	action string
}

// lacking returns what a row needs and is not granted.
func (g *Granted) lacking(w Work, r row) (out []lack) {
	for _, name := range w.names(r.on) {
		on := resource{w.Database, name}
		for _, a := range r.actions {
			if !slices.ContainsFunc(strings.Split(a, "|"), func(one string) bool { return g.has(on, one) }) {
				out = append(out, lack{on, strings.ReplaceAll(a, "|", " or ")})
			}
		}
	}
	if len(out) > 0 && len(r.instead) > 0 && !slices.ContainsFunc(r.instead, func(o row) bool { return len(g.lacking(w, o)) > 0 }) {
		return nil
	}
	return out
}

// most is how many resources are named.
const most = 10

// Lacks describes what the user lacks for a verb. It is empty if there is nothing, if nothing is to do, or if g is nil.
func (g *Granted) Lacks(v Verb, w Work) string {
	if w = w.of(v); g == nil || w.empty() {
		return ""
	}
	var resources []resource
	by := make(map[resource][]string)
	for _, r := range table {
		if r.verb != v {
			continue
		}
		for _, l := range g.lacking(w, r) {
			if by[l.on] == nil {
				resources = append(resources, l.on)
			}
			if !slices.Contains(by[l.on], l.action) {
				by[l.on] = append(by[l.on], l.action)
			}
		}
	}
	var parts []string
	for i := 0; i < len(resources); i++ {
		on := []string{resources[i].String()}
		for j := i + 1; j < len(resources); j++ {
			if slices.Equal(by[resources[j]], by[resources[i]]) {
				on = append(on, resources[j].String())
				resources = slices.Delete(resources, j, j+1)
				j--
			}
		}
		if n := len(on) - most; n > 1 {
			on = append(on[:most], "others")
		}
		parts = append(parts, and(by[resources[i]])+" on "+and(on))
	}
	return strings.Join(parts, "; ")
}

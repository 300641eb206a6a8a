package uuidaudit

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// parts says in which fields of a command the documents of users are. For the fields of the second
// kind, an array of statements, it says so for each statement.
var parts = map[string]map[string]string{
	"insert":        {"documents": inDocument},
	"find":          {"filter": inFilter, "let": inFilter, "min": inFilter, "max": inFilter, "projection": inFilter},
	"count":         {"query": inFilter},
	"distinct":      {"query": inFilter},
	"aggregate":     {"pipeline": inPipeline, "let": inFilter},
	"findAndModify": {"query": inFilter, "update": inUpdate, "arrayFilters": inArrayFilter, "let": inFilter, "fields": inFilter},
	"update":        {"let": inFilter},
	"delete":        {"let": inFilter},
	"bulkWrite":     {"let": inFilter},
	"getMore":       {},
	"mapReduce":     {"query": inFilter, "scope": inFilter, "map": inFilter, "reduce": inFilter, "finalize": inFilter},
	"createIndexes": {},
	"create":        {"validator": inFilter, "pipeline": inPipeline},
	"collMod":       {"validator": inFilter, "pipeline": inPipeline},
}

var statements = map[string]map[string]string{
	"updates": {"q": inFilter, "u": inUpdate, "c": inUpdate, "arrayFilters": inArrayFilter},
	"deletes": {"q": inFilter},
	"indexes": {"partialFilterExpression": inFilter},
	"ops": {
		"document": inDocument, "filter": inFilter, "updateMods": inUpdate, "constants": inUpdate,
		"arrayFilters": inArrayFilter,
	},
}

// started looks at a command.
func (a *Audit) started(e *event.CommandStartedEvent) {
	name, command := e.CommandName, []byte(e.Command)
	for key, v := range elements(command) {
		if name == "explain" && v.Type == bson.TypeEmbeddedDocument && string(key) == "explain" {
			a.command(e, v.Value)
			return
		}
		break
	}
	a.command(e, command)
}

// command looks at a command, or at the one that is explained.
func (a *Audit) command(e *event.CommandStartedEvent, command []byte) {
	var name, collection string
	for key, v := range elements(command) {
		name, collection = string(key), text(v)
		break
	}
	switch name { // servers accept both forms
	case "findandmodify":
		name = "findAndModify"
	case "mapreduce":
		name = "mapReduce"
	}
	fields, ok := parts[name]
	if !ok || !a.sampled() {
		return
	}
	explained := e.CommandName == "explain"
	if name == "getMore" {
		collection = lookupText(command, "collection")
	}
	if name != "bulkWrite" && a.ignored(e.DatabaseName, collection) {
		return
	}
	switch name {
	case "find", "getMore", "findAndModify", "aggregate", "distinct", "mapReduce":
		r := request{id: e.RequestID, command: name, collection: collection}
		if name == "distinct" {
			r.path = lookupText(command, "key")
		}
		if name == "aggregate" && ofTheServer(command, &r.changes) || explained {
			break
		}
		if collection == "$cmd.aggregate" { // of a database: its change stream, or documents of the server
			r.collection, r.changes = "", true
		}
		if len(r.collection) == 0 || r.collection[0] != '$' {
			a.await(r)
		}
	}
	if name == "bulkWrite" {
		a.bulkWrite(e, command)
		return
	}
	c := a.collector()
	for key, v := range elements(command) {
		if part, ok := fields[string(key)]; ok {
			c.part = part
			c.value(v, 0)
		} else if each, ok := statements[string(key)]; ok && v.Type == bson.TypeArray {
			for _, v := range elements(v.Value) {
				if v.Type == bson.TypeEmbeddedDocument {
					c.statement(each, v.Value)
				}
			}
		}
	}
	a.reportAll(c, e.DatabaseName, collection, name)
}

func (c *collector) statement(each map[string]string, statement []byte) {
	for key, v := range elements(statement) {
		if part, ok := each[string(key)]; ok {
			c.part = part
			c.value(v, 0)
		}
	}
}

// bulkWrite looks at the client-level bulk write, whose statements name their namespaces by index.
func (a *Audit) bulkWrite(e *event.CommandStartedEvent, command []byte) {
	var namespaces []string
	for key, v := range elements(command) {
		if string(key) != "nsInfo" || v.Type != bson.TypeArray {
			continue
		}
		for _, info := range elements(v.Value) {
			namespaces = append(namespaces, lookupText(info.Value, "ns"))
		}
	}
	byNamespace := map[string]*collector{}
	var order []string
	for key, ops := range elements(command) {
		if string(key) != "ops" || ops.Type != bson.TypeArray {
			continue
		}
		for _, op := range elements(ops.Value) {
			if op.Type != bson.TypeEmbeddedDocument {
				continue
			}
			ns := ""
			for _, v := range elements(op.Value) { // insert, update or delete comes first
				if i, ok := v.AsInt64OK(); ok && i >= 0 && i < int64(len(namespaces)) {
					ns = namespaces[i]
				}
				break
			}
			c := byNamespace[ns]
			if c == nil {
				c = a.collector()
				byNamespace[ns] = c
				order = append(order, ns)
			}
			c.statement(statements["ops"], op.Value)
		}
	}
	for _, ns := range order {
		database, collection := split(ns)
		if !a.ignored(database, collection) {
			a.reportAll(byNamespace[ns], database, collection, e.CommandName)
		}
	}
}

// ofTheServer reports whether the documents of an aggregation are the server's own, as those of
// $listCatalog or $currentOp. The stage $changeStream sets changes.
func ofTheServer(command []byte, changes *bool) bool {
	for key, pipeline := range elements(command) {
		if string(key) != "pipeline" || pipeline.Type != bson.TypeArray {
			continue
		}
		for _, stage := range elements(pipeline.Value) {
			for name := range elements(stage.Value) {
				switch string(name) {
				case "$changeStream":
					*changes = true
				case "$listCatalog", "$collStats", "$indexStats", "$currentOp", "$listSessions",
					"$listLocalSessions", "$planCacheStats", "$listSearchIndexes", "$listClusterCatalog",
					"$querySettings", "$listSampledQueries", "$shardedDataDistribution":
					return true
				}
				break
			}
			break
		}
	}
	return false
}

// succeeded looks at a reply. Nothing of it is kept.
func (a *Audit) succeeded(e *event.CommandSucceededEvent) {
	r, ok := a.finish(e.RequestID)
	if !ok {
		return
	}
	c := a.collector()
	c.part = inReply
	for key, v := range elements(e.Reply) {
		switch {
		case string(key) == "value" && r.command == "findAndModify":
			c.value(v, 0)
		case string(key) == "values" && r.command == "distinct" && v.Type == bson.TypeArray:
			c.appendPath([]byte(r.path))
			for _, v := range elements(v.Value) {
				c.value(v, 0)
			}
			c.path = c.path[:0]
		case string(key) == "results" && r.command == "mapReduce" && v.Type == bson.TypeArray:
			for _, v := range elements(v.Value) {
				c.value(v, 0)
			}
		case string(key) == "cursor" && v.Type == bson.TypeEmbeddedDocument:
			for key, batch := range elements(v.Value) {
				if batch.Type == bson.TypeArray && (string(key) == "firstBatch" || string(key) == "nextBatch") {
					for _, doc := range elements(batch.Value) {
						c.result(doc, r.changes)
					}
				}
			}
		}
	}
	a.reportAll(c, e.DatabaseName, r.collection, r.command)
}

// result looks at a document of a batch. Of the event of a change stream, which can also come with
// getMore, only the fields with documents of users are looked at.
func (c *collector) result(doc bson.RawValue, changes bool) {
	if !changes && !isChange(doc.Value) {
		c.value(doc, 0)
		return
	}
	for key, v := range elements(doc.Value) {
		switch string(key) {
		case "documentKey", "fullDocument", "fullDocumentBeforeChange", "updateDescription":
			c.path = append(c.path[:0], key...)
			c.value(v, 0)
			c.path = c.path[:0]
		}
	}
}

// isChange reports whether doc has the form of a change event: {_id: {_data: …}, operationType: …}.
func isChange(doc []byte) bool {
	token, operation := false, false
	for key, v := range elements(doc) {
		switch {
		case v.Type == bson.TypeEmbeddedDocument && string(key) == "_id":
			for key := range elements(v.Value) {
				token = string(key) == "_data"
				break
			}
		case v.Type == bson.TypeString && string(key) == "operationType":
			operation = true
		}
	}
	return token && operation
}

func (a *Audit) collector() *collector { return &collector{foreign: &a.foreign, text: a.text} }

// chunkData are the paths, in a command and in the event of a change stream, of the bytes of a GridFS
// file. The last chunk of a file may have 16.
var chunkData = map[string]bool{"data": true, "fullDocument.data": true}

func (a *Audit) reportAll(c *collector, database, collection, command string) {
	for _, p := range c.order {
		if p.subtype == bson.TypeBinaryGeneric && !p.text && strings.HasSuffix(collection, ".chunks") && chunkData[strings.TrimPrefix(p.path, "*.")] {
			continue
		}
		a.report(Finding{
			Database: database, Collection: collection, Command: command,
			Part: p.part, Path: p.path, Subtype: p.subtype, Text: p.text, Count: *c.counts[p],
		})
	}
}

func split(ns string) (database, collection string) {
	database, collection, _ = strings.Cut(ns, ".")
	return database, collection
}

// text returns a string value, and "" for a value of another type.
func text(v bson.RawValue) string {
	s, _ := v.StringValueOK()
	return s
}

func lookupText(doc []byte, name string) string {
	for key, v := range elements(doc) {
		if string(key) == name {
			return text(v)
		}
	}
	return ""
}

package failure

import (
	"regexp"
	"strings"
)

// denied matches the text with which MongoDB refuses a command: the database, the name of the command, and the value
// of that.
var denied = regexp.MustCompile(`not authorized on (\S+) to execute command \{ ?"?(\w+)"?: (?:"((?:[^"\\]|\\.)*)")?`)

// actions has the action that a command of this program needs, as MongoDB names it.
var actions = map[string]string{"find": "find", "count": "find", "aggregate": "find", "insert": "insert", "update": "update", "delete": "remove",
	"create": "createCollection", "createIndexes": "createIndex", "drop": "dropCollection", "collMod": "collMod", "collStats": "collStats",
	"listIndexes": "listIndexes", "listCollections": "listCollections", "renameCollection": "renameCollectionSameDB"}

// refused describes the refusal of a command for a missing privilege in one line: which command about what, and the
// action that it needs. It leaves out the rest of the command, which may be large, and have values.
func refused(text string) string {
	short, _, _ := strings.Cut(text, "{")
	short = strings.TrimSpace(short)
	m := denied.FindStringSubmatch(text)
	if m == nil {
		return short
	}
	db, command, name := m[1], m[2], m[3]
	on, action := db+"."+name, actions[command]
	switch {
	case command == "renameCollection": // names the collection with its database, and is sent to another one
		on = name
		db, _, _ = strings.Cut(name, ".")
		action += " on the database " + db
	case name == "":
		on = "the database " + db
		if command == "aggregate" {
			action = "changeStream and find on it"
		}
	case strings.Contains(text, "bypassDocumentValidation: true"):
		action += " and bypassDocumentValidation"
	}
	short += " " + command + " on " + on
	if action != "" {
		short += ", which needs the action " + action
	}
	return short
}

package server

import (
	"slices"
	"strings"
)

// ValidDatabase reports whether a database may have the name.
func ValidDatabase(name string) bool {
	return name != "" && len(name) < 64 && !strings.ContainsAny(name, "/\\. \"$\x00")
}

// ServerDatabase reports whether the database is one of the server itself.
func ServerDatabase(name string) bool {
	return slices.Contains([]string{"admin", "config", "local"}, name)
}

// ValidCollection reports whether a collection of a user may have the name.
func ValidCollection(name string) bool {
	return name != "" && !strings.HasPrefix(name, "system.") && !strings.ContainsAny(name, "$\x00")
}

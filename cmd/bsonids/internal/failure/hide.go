package failure

import (
	"strings"

	"github.com/bsonids/bsonids/internal/redact"
)

// Hide removes from text what the arguments of a command line contain of connection strings. It
// checks all arguments, because other tools take a connection string without a flag.
func Hide(text string, args []string) string {
	for _, arg := range args {
		if strings.Contains(arg, "://") {
			text = redact.ConnectionString(arg).Text(text)
		}
	}
	return text
}

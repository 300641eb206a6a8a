package clientopt

import (
	"errors"
	"fmt"
	"strings"
)

const representationOption = "uuidrepresentation"

// maxDistance is how many letters of an option's name can differ from uuidRepresentation for the
// name to be a mistake. The driver's own names differ by more.
const maxDistance = 5

// holdsRepresentation reports whether a part of a connection string that is not the name of an
// option has uuidRepresentation=, as written, because a separator before it is wrong.
func holdsRepresentation(s string) bool {
	return strings.Contains(strings.ToLower(s), representationOption+"=")
}

// checkNearMiss reports an option's name, other than uuidRepresentation, that seems to mean it. The
// driver ignores options that it does not know, so a mistake would leave the client unspecified
// without a word. The text continues "option 1".
func checkNearMiss(name string) error {
	letters := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	if distance(letters, representationOption) <= maxDistance && len(name) <= 2*len(representationOption) {
		return fmt.Errorf(", %q, is not known: did you mean uuidRepresentation?", name)
	}
	if strings.Contains(letters, "uuid") || strings.Contains(letters, "guid") {
		// A name that is mostly something else can be a part of a password, so it is not shown.
		return errors.New(" is not known and has uuid or guid in its name: did you mean uuidRepresentation?")
	}
	return nil
}

// distance returns the Levenshtein distance of a and b, which are ASCII.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

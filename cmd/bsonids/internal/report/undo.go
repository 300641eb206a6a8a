package report

import (
	"fmt"
	"io"
)

// notRestored says what an undo leaves, and with hint, how it can be ended.
func notRestored(w io.Writer, left, foreign int64, hint bool) {
	if foreign > 0 {
		fmt.Fprintf(w, "\n%d values of the new representation are not in the undo log: other programs or other runs wrote them, and undo leaves them.\n", foreign)
	}
	if left > 0 && hint {
		fmt.Fprintln(w, "\nTo accept the values that are not restored, and to end the undo, give --allow-changed.")
	}
}

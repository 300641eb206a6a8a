package rule

import (
	"fmt"
	"testing"
)

// The number of names is bounded, and every value is counted.
func TestTally(t *testing.T) {
	c := make(Tally)
	for i := range 3 * MaxNames {
		c.Add(fmt.Sprint("name", i), 1)
		c.Add("name0", 2)
	}
	if len(c) != MaxNames+1 || c["name0"] != 1+2*3*MaxNames || c["name1"] != 1 || c[Others] != 2*MaxNames {
		t.Errorf("%d names, %d others", len(c), c[Others])
	}
}

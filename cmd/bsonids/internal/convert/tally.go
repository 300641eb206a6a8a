package convert

// Tally counts by name. Names may be data, as field names are where a document is a map of its users; so those after the
// first thousands are counted together, under [Others].
type Tally map[string]int64

// Others is the name of all further names.
const Others = "(others)"

const maxNames = 2000

// add counts n more.
func (t Tally) add(name string, n int64) {
	if _, ok := t[name]; !ok && len(t) >= maxNames {
		name = Others
	}
	t[name] += n
}

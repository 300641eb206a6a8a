package convert

// Tally counts by name. Names may be data, for example if a document is a map from users. The
// number of names is therefore bounded, and further names are counted under [Others].
type Tally map[string]int64

// Others is the name under which further names are counted.
const Others = "(others)"

const maxNames = 2000

// add adds n to the count of name.
func (t Tally) add(name string, n int64) {
	if _, ok := t[name]; !ok && len(t) >= maxNames {
		name = Others
	}
	t[name] += n
}

package rule

// Tally counts by name. Names may be data, for example if a document is a map from users. The
// number of names is therefore bounded, and further names are counted under [Others].
type Tally map[string]int64

// Others is the name under which further names are counted.
const Others = "(others)"

// MaxNames is the maximum number of names that are counted apart.
const MaxNames = 2000

// Add adds n to the count of name.
func (t Tally) Add(name string, n int64) {
	if _, ok := t[name]; !ok && len(t) >= MaxNames {
		name = Others
	}
	t[name] += n
}

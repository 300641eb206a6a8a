package decide

import "slices"

// MaxEqual is the maximum number of values in a decision, which is part of the state. A decision
// lists only values for which equality changes the outcome.
const MaxEqual = 50_000

// Elsewhere is a field that is not converted and has values equal to converted ones.
type Elsewhere struct {
	Namespace string `json:"collection"`
	Path      string `json:"path"`
	Equal     int64  `json:"equal"` // number of distinct values
}

// settle adds to the decision the values for which equality changes the outcome, at most room of
// them.
func (d *Field) settle(equal, against [][]byte, room *int) {
	if len(equal) > *room {
		equal = nil // a subset would be arbitrary
	}
	*room -= len(equal)
	if len(against) > *room {
		d.Basis, d.Reason = None, "too many values equal ids in another byte order"
		d.Fits, against = 0, nil
	}
	*room -= len(against)
	if len(equal) > 0 && d.Basis == None {
		d.Basis = Equality
	}
	slices.SortFunc(equal, slices.Compare)
	slices.SortFunc(against, slices.Compare)
	d.Equal, d.Contradicted = equal, against
	d.Fits += int64(len(equal) - len(against))
}

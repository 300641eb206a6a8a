package report

// Basis is what a proof is based on.
type Basis string

// The bases. [PlanProof] writes what each of them proves.
const (
	RestsOnUndoLog Basis = "undoLog"
	RestsOnSource  Basis = "source" // the collection that was copied
)

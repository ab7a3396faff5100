package pass

import "slices"

// Data is the samples that a step, or the search of --auto, ran the model on.
type Data struct {
	Method  string // empty for the search
	Use     string // calibration, training, validation or search
	Path    string // of the file or folder; empty for random inputs
	Labels  string // path of the file of labels, or their name in the data
	Samples int    // each counted once
	Seed    uint64 // of random inputs
}

// Used adds the samples that the step runs the model on, once for each use of them.
func (l *Ledger) Used(d Data) {
	d.Method = l.method
	if !slices.Contains(l.data, d) {
		l.data = append(l.data, d)
	}
}

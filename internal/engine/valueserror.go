package engine

// A ValuesError is an error of a run that floats cause which it computes, such as an index beyond an axis or a size
// that does not fit another one: a model whose weights differ a little may run on the same inputs.
type ValuesError struct{ Err error }

// Error is that of the node.
func (e *ValuesError) Error() string { return e.Err.Error() }

// Unwrap returns it.
func (e *ValuesError) Unwrap() error { return e.Err }

// caused marks an error of step i if its shapes, or integers that it reads, depend on floats of the run.
func (in *instance) caused(i int, s *step, err error) error {
	if err == nil {
		return nil
	}
	f := floatSources{in.plan, in.plan.prog.producers(), map[int]bool{}}
	of := in.plan.modes[i] == dynamic
	for _, slot := range s.in {
		of = of || slot != absent && !f.float(slot) && f.derived(slot)
	}
	if of {
		return &ValuesError{err}
	}
	return err
}

// floatSources finds which integers are computed from floats, not only from shapes, constants and integers among the
// inputs.
type floatSources struct {
	plan      *plan
	producers []int // steps by slot
	seen      map[int]bool
}

func (f floatSources) float(slot int) bool {
	return f.plan.values[slot] != nil && f.plan.values[slot].DType.IsFloat()
}

// derived reports whether a slot is computed from floats. What a subgraph gets may be.
func (f floatSources) derived(slot int) bool {
	i := f.producers[slot]
	switch {
	case f.seen[slot] || f.plan.prog.slots[slot].constant != nil:
		return false
	case i == absent:
		return f.plan.prog.names == nil
	case f.plan.modes[i] == precomputed:
		return false
	}
	f.seen[slot] = true
	s := f.plan.prog.steps[i]
	if s.ID.Is("Shape") || s.ID.Is("Size") {
		return false
	}
	for _, j := range s.in {
		if j != absent && (f.float(j) || f.derived(j)) {
			return true
		}
	}
	return false
}

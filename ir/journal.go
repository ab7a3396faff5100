package ir

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// A Journal keeps the results of units of work, so that a run continues after an interruption with the same end result,
// and so that several processes divide the units of one run. Units of one run have different names.
type Journal interface {
	// Result returns the parts of the result of a unit, ok is false if it is not known.
	Result(unit string) (parts []*io.SectionReader, ok bool)
	// Add keeps the result of a unit and returns its parts.
	Add(ctx context.Context, unit string, parts ...[]byte) ([]*io.SectionReader, error)
	// File is the path of a file of the run that is kept like the results.
	File(ctx context.Context, name string) (string, error)
	// Mine reports which of several units that do not depend on each other this process computes, the others being
	// those of other processes. Times are proportional to costs.
	Mine(costs []int64) []bool
}

// An Elsewhere is the error of a unit that another process computes, and whose result is not known yet.
type Elsewhere struct{ Unit string }

// Error names the unit.
func (e *Elsewhere) Error() string { return fmt.Sprintf("another process computes %q", e.Unit) }

// ElsewhereIn returns the *Elsewhere that err is or wraps; ok is false if there is none.
func ElsewhereIn(err error) (e *Elsewhere, ok bool) {
	ok = errors.As(err, &e)
	return e, ok
}

// Mine is j.Mine; a nil j has no other processes.
func Mine(j Journal, costs []int64) []bool {
	if j != nil {
		return j.Mine(costs)
	}
	all := make([]bool, len(costs))
	for i := range all {
		all[i] = true
	}
	return all
}

// Each calls do for each of several units that do not depend on each other, and whether it is one of this process.
// Units whose results are not known yet do not keep it from the others: their *Elsewhere is returned in the end.
func Each(j Journal, costs []int64, do func(i int, mine bool) error) error {
	var missing error
	for i, mine := range Mine(j, costs) {
		err := do(i, mine)
		if _, ok := ElsewhereIn(err); ok {
			missing = err
		} else if err != nil {
			return err
		}
	}
	return missing
}

// Serial runs units that depend on each other. One process computes them: see Run. Name is that of a unit.
func Serial(ctx context.Context, j Journal, name string, run func() error) error {
	return Run(ctx, j, name, Mine(j, []int64{1})[0], run)
}

// Run runs units that are computed together. In a process in which they are not mine it is an *Elsewhere until they are
// known, and then run finds the results. Name is that of a unit besides.
func Run(ctx context.Context, j Journal, name string, mine bool, run func() error) error {
	if j == nil {
		return run()
	}
	// Its units are known to all then, so that run only reads them.
	if _, ended := j.Result(name); ended {
		return run()
	}
	_, err := Once(ctx, j, name, mine, func() ([]byte, error) { return nil, run() })
	return err
}

// Once returns the result of a unit: one that is known in j, or what compute returns, which j keeps. A nil j keeps
// nothing. A unit that is not known and not mine, which a nil j has none of, is an *Elsewhere.
func Once(ctx context.Context, j Journal, unit string, mine bool, compute func() ([]byte, error)) ([]byte, error) {
	if j == nil {
		return compute()
	}
	if parts, ok := j.Result(unit); ok {
		b := make([]byte, parts[0].Size())
		return b, ReadFull(parts[0], b, 0)
	}
	if !mine {
		return nil, &Elsewhere{unit}
	}
	b, err := compute()
	if err != nil {
		return nil, err
	}
	_, err = j.Add(ctx, unit, b)
	return b, err
}

package dataset

import (
	"errors"
	"fmt"
	"strings"
)

// A SizeError is an error of a run in which sizes of dynamic axes were chosen.
type SizeError struct {
	Err    error
	chosen string
}

// Error names the axes and their sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%v; sizes chosen for dynamic axes: %s; set others with --dim NAME=N", e.Err, e.chosen)
}

// Unwrap is the error of the run.
func (e *SizeError) Unwrap() error { return e.Err }

// Explain adds the sizes that were chosen for dynamic axes to an error of running the model on s: another size may
// prevent it.
func (s *Set) Explain(err error) error { return s.chosen.explain(err) }

// ExplainSpecs does the same for an error of a run with the shapes of Specs.
func ExplainSpecs(inputs []Input, r Random, err error) error {
	return newAxes(inputs, r.Dims, r.Batch).explain(err)
}

// maxNamed bounds the axes in a message.
const maxNamed = 6

func (x *axes) explain(err error) error {
	var known *SizeError
	if x == nil || err == nil || errors.As(err, &known) {
		return err
	}
	var chosen []string
	for _, name := range x.names {
		if _, given := x.given[name]; !given && !x.batch[name] {
			chosen = append(chosen, fmt.Sprintf("%s=%d", name, x.sizes[name]))
		}
	}
	if len(chosen) == 0 {
		return err
	}
	if rest := len(chosen) - maxNamed; rest > 0 {
		chosen = append(chosen[:maxNamed], fmt.Sprintf("and %d more", rest))
	}
	return &SizeError{err, strings.Join(chosen, ", ")}
}

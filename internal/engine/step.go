package engine

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// shape infers the types of the operator's outputs.
func (s *step) shape(in []*ir.Array) (specs []ir.Spec, err error) {
	defer s.guard(&err)
	specs, err = s.op.Shape(s.Node, in)
	if errors.Is(err, op.ErrUnknown) {
		return nil, err
	}
	if err != nil {
		return nil, s.wrap(err)
	}
	for i := range specs {
		if i >= len(s.out) || s.out[i] == absent {
			continue
		}
		if err := op.Valid(specs[i]); err != nil {
			return nil, s.wrap(fmt.Errorf("output %d: %w", i, err))
		}
	}
	return specs, nil
}

// scratch is the size in bytes of the operator's scratch memory.
func (s *step) scratch(in []*ir.Array, workers int) (n int64, err error) {
	defer s.guard(&err)
	return s.op.Work(s.Node, in, workers), nil
}

func (s *step) run(c *op.Call) (err error) {
	defer s.guard(&err)
	if err := s.op.Run(c); err != nil {
		return s.wrap(err)
	}
	return nil
}

func (s *step) wrap(err error) error {
	return fmt.Errorf("%s: %w", ir.Place(s.Label, s.ID, s.Module), err)
}

// guard turns a panic, which is a bug in an operator, into an error that names the node.
func (s *step) guard(err *error) {
	if v := recover(); v != nil {
		*err = s.wrap(&ir.Bug{Value: v, Stack: debug.Stack()})
	}
}

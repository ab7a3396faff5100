package op

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/ir"
)

// A Call is one execution of a node.
type Call struct {
	*Node
	Ctx  context.Context
	In   []*ir.Array // absent ones are nil
	Out  []*ir.Array // of the types that Shape returned; nil if Shape is nil or the output has no consumer
	Work []byte      // scratch memory of the size that Op.Work returned, aligned to 64 bytes, not cleared
	Pool *Pool
	// Account is checked before memory is allocated that is neither an output of the types that Shape returned nor
	// Work.
	Account *Account
	// Kept is what Run derived from the node and the types of In, nil before: a later call with the same node and types
	// may find it here, with other data. It must be small, as no account has it.
	Kept any
	Rows io.ReaderAt // the bytes of input 0, whose Data is nil then; nil unless Op.Rows applies
}

// Opt is input i, nil if absent.
func (c *Call) Opt(i int) *ir.Array { return Opt(c.In, i) }

// Make allocates output i, for operators without a Shape function.
func (c *Call) Make(i int, dt ir.DType, shape ...int64) (*ir.Array, error) {
	spec := ir.Spec{DType: dt, Shape: shape}
	if err := Valid(spec); err != nil {
		return nil, err
	}
	if err := c.Account.Check(Size(spec)); err != nil {
		return nil, err
	}
	c.Out[i] = ir.NewArray(dt, shape...)
	return c.Out[i], nil
}

// FloatOrDouble is Run of an operator on Float and Double: it runs the function for the type of input 0.
func FloatOrDouble(single, double func(*Call) error) func(*Call) error {
	return func(c *Call) error {
		if c.In[0].DType == ir.Double {
			return double(c)
		}
		return single(c)
	}
}

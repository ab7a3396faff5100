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
	Out  []*ir.Array // of the types that Shape gave; nil where Shape is nil or nobody reads them
	Work []byte      // scratch of the size that Op.Work gave, aligned to 64 bytes, not cleared
	Pool *Pool
	Rows io.ReaderAt // the bytes of input 0, which has none of its own then; nil for all but what Op.Rows is about
}

// Opt is input i, nil where it is absent.
func (c *Call) Opt(i int) *ir.Array { return Opt(c.In, i) }

// Make gives output i memory of its own; for operators without a Shape function. The
// caller has checked that the shape is no larger than its inputs justify.
func (c *Call) Make(i int, dt ir.DType, shape ...int64) *ir.Array {
	a := ir.NewArray(dt, shape...)
	c.Out[i] = a
	return a
}

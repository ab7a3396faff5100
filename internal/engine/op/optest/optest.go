package optest

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Case is one node with its inputs.
type Case struct {
	Domain, Type string
	Version      int64 // of the domain
	In           []*ir.Array
	Attrs        []*ir.Attr
	Arrays       map[string]*ir.Array // tensors among the attributes
	Consts       []int                // inputs that are constants, passed to Prepare
	Fixed        []int                // inputs that are the same in every run, but not passed to Prepare
	Outputs      int                  // 1 if it is 0
	Workers      int                  // 1 if it is 0
	InPlace      int                  // 1 + the input whose memory output 0 reuses; 0 for memory of its own
}

// Run runs the case with the row of ops for its version.
func Run(ops []op.Op, c Case) ([]*ir.Array, error) {
	row := Row(ops, c)
	if row == nil {
		return nil, fmt.Errorf("no operator %s at version %d", c.Type, c.Version)
	}
	return RunRow(row, c)
}

// RunRow runs the case with this row.
func RunRow(row *op.Op, c Case) ([]*ir.Array, error) {
	pool := op.NewPool(max(c.Workers, 1))
	defer pool.Close()
	call, err := NewCall(row, c, pool)
	if err != nil || row.View {
		return call.Out, err
	}
	return call.Out, row.Run(call)
}

// NewCall returns the call of a case's node. Outputs and scratch memory are filled with NaN.
func NewCall(row *op.Op, c Case, pool *op.Pool) (*op.Call, error) {
	n := c.Node()
	call := &op.Call{Node: n, Ctx: context.Background(), In: slices.Clone(c.In), Out: make([]*ir.Array, n.NumOut()),
		Pool: pool}
	if err := prepare(row, call, c.Consts); err != nil {
		return call, err
	}
	if err := allocate(row, call); err != nil {
		return call, err
	}
	if row.View {
		call.Out[0].Data, call.Out[0].Text = c.In[0].Data, c.In[0].Text
	}
	if i := c.InPlace - 1; i >= 0 {
		call.Out[0].Data = c.In[i].Data
	}
	if row.Work != nil {
		call.Work = ir.AlignedBytes(row.Work(n, call.In, pool.Workers()))
		spoil(call.Work)
	}
	return call, nil
}

// Node is the case's node. All its outputs have consumers.
func (c Case) Node() *op.Node {
	n := op.NewNode(ir.OpID{Domain: c.Domain, Type: c.Type}, c.Version, c.Attrs, c.Arrays)
	n.NumIn, n.Const, n.Consumed = len(c.In), make([]bool, len(c.In)), slices.Repeat([]bool{true}, max(c.Outputs, 1))
	n.Fixed = make([]bool, len(c.In))
	for _, i := range c.Fixed {
		n.Fixed[i] = true
	}
	return n
}

// prepare passes constant inputs to Prepare, and removes the data of those that it drops.
func prepare(row *op.Op, c *op.Call, consts []int) error {
	if row.Prepare == nil || len(consts) == 0 {
		return nil
	}
	known := make([]*ir.Array, len(c.In))
	for _, i := range consts {
		known[i], c.Const[i] = c.In[i], c.In[i] != nil
	}
	p, err := row.Prepare(c.Node, known, c.Pool)
	if err != nil || p == nil {
		return err
	}
	c.State = p.State
	for _, i := range p.Drops {
		c.In[i] = &ir.Array{DType: c.In[i].DType, Shape: c.In[i].Shape}
	}
	return nil
}

// allocate makes the outputs that Shape declares.
func allocate(row *op.Op, c *op.Call) error {
	if row.Shape == nil {
		return nil
	}
	specs, err := row.Shape(c.Node, c.In)
	if err != nil {
		return err
	}
	for i, s := range specs[:min(len(specs), c.NumOut())] {
		c.Out[i] = ir.NewArray(s.DType, s.Shape...)
		spoil(c.Out[i].Data)
	}
	return nil
}

// spoil fills memory with NaN, in any float type.
func spoil(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// Row is the row of ops for the case's version, nil if there is none.
func Row(ops []op.Op, c Case) *op.Op {
	var best *op.Op
	for i, o := range ops {
		if o.Domain == c.Domain && o.Type == c.Type && o.Since <= c.Version && (best == nil || o.Since > best.Since) {
			best = &ops[i]
		}
	}
	return best
}

// Array is a tensor of one axis with these elements.
func Array[T ir.Element](v ...T) *ir.Array { return ir.ArrayOf(slices.Clone(v), int64(len(v))) }

// Scalar is a tensor of rank 0.
func Scalar[T ir.Element](v T) *ir.Array { return ir.ArrayOf([]T{v}) }

package optest

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Case is one operator with its inputs.
type Case struct {
	Domain, Type string
	Version      int64 // of the domain
	In           []*ir.Array
	Attrs        []*ir.Attr
	Outputs      int // 1 if it is 0
	Workers      int // 1 if it is 0
	InPlace      int // 1 + the input whose memory output 0 reuses; 0 for memory of its own
}

// Run runs the case with the row of ops for its version.
func Run(ops []op.Op, c Case) ([]*ir.Array, error) {
	row := Row(ops, c)
	if row == nil {
		return nil, fmt.Errorf("no operator %s at version %d", c.Type, c.Version)
	}
	n := op.NewNode(ir.OpID{Domain: c.Domain, Type: c.Type}, c.Version, c.Attrs, nil)
	n.Label, n.NumIn = c.Type, len(c.In)
	for range max(c.Outputs, 1) {
		n.Consumed = append(n.Consumed, true)
	}
	pool := op.NewPool(max(c.Workers, 1))
	defer pool.Close()
	call := &op.Call{Node: n, In: c.In, Out: make([]*ir.Array, n.NumOut()), Pool: pool}
	if row.Shape != nil {
		specs, err := row.Shape(n, c.In)
		if err != nil {
			return nil, err
		}
		for i, s := range specs[:min(len(specs), n.NumOut())] {
			call.Out[i] = ir.NewArray(s.DType, s.Shape...)
			spoil(call.Out[i].Data)
		}
	}
	if row.View {
		call.Out[0].Data = c.In[0].Data
		return call.Out, nil
	}
	if i := c.InPlace - 1; i >= 0 {
		call.Out[0].Data = c.In[i].Data
	}
	if row.Work != nil {
		call.Work = ir.AlignedBytes(row.Work(n, c.In, pool.Workers()))
		spoil(call.Work)
	}
	return call.Out, row.Run(call)
}

// spoil fills memory with garbage.
func spoil(b []byte) {
	for i := range b {
		b[i] = 0xa5
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

// Int is an attribute.
func Int(name string, v int64) *ir.Attr { return &ir.Attr{Name: name, I: v} }

// Ints is an attribute.
func Ints(name string, v ...int64) *ir.Attr { return &ir.Attr{Name: name, Ints: v} }

// Float is an attribute.
func Float(name string, v float32) *ir.Attr { return &ir.Attr{Name: name, F: v} }

// Text is an attribute.
func Text(name, v string) *ir.Attr { return &ir.Attr{Name: name, S: v} }

// Array is a tensor of one axis with these elements.
func Array[T ir.Element](v ...T) *ir.Array { return ir.ArrayOf(slices.Clone(v), int64(len(v))) }

// Scalar is a tensor of rank 0.
func Scalar[T ir.Element](v T) *ir.Array { return ir.ArrayOf([]T{v}) }

package elementwise

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/elementwise/narrow"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/ir"
)

// castable are the types that Cast supports. The 6-bit ones were added in opset 28.
const castable = block.Any &^ block.Complex

func castOps() []op.Op {
	cast := op.Op{Type: "Cast", Since: 6, Shape: castShape(castTarget), Run: runCast, Work: zipWork,
		InPlace: []int{0}, Pack: packedweight.Cast, Packs: true}
	like := op.Op{Type: "CastLike", Since: 15, Shape: castShape(likeTarget), Run: runCast, Work: zipWork,
		InPlace: []int{0}}
	bits := op.Op{Type: "BitCast", Since: 26, Shape: castShape(bitTarget), View: true}
	return []op.Op{cast, like, bits}
}

func castShape(target func(*op.Node, []*ir.Array) (ir.DType, error)) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		x, err := block.Any.Tensor(in, 0, "input")
		if err != nil {
			return nil, err
		}
		to, err := target(n, in)
		if err != nil {
			return nil, err
		}
		return []ir.Spec{{DType: to, Shape: x.Shape}}, nil
	}
}

func castTarget(n *op.Node, in []*ir.Array) (ir.DType, error) {
	return target(n.Int("to", 0), castable, in)
}

func likeTarget(_ *op.Node, in []*ir.Array) (ir.DType, error) {
	like, err := castable.Tensor(in, 1, "target_type")
	if err != nil {
		return 0, err
	}
	return target(int64(like.DType), castable, in)
}

func bitTarget(n *op.Node, in []*ir.Array) (ir.DType, error) {
	to, err := target(n.Int("to", 0), block.Any&^block.Text, in)
	if err != nil {
		return 0, err
	}
	if to.Bits() != in[0].DType.Bits() {
		return 0, fmt.Errorf("attribute to is %s, want a type of the width of %s", to, in[0].DType)
	}
	return to, nil
}

func target(to int64, types block.Set, in []*ir.Array) (ir.DType, error) {
	if to <= 0 || to > 255 || !types.Has(ir.DType(to)) {
		return 0, fmt.Errorf("attribute to is %d, which is not a supported type", to)
	}
	if !types.Has(in[0].DType) {
		return 0, fmt.Errorf("input is %s, which is not supported", in[0])
	}
	return ir.DType(to), nil
}

func runCast(c *op.Call) error {
	src, dst := c.In[0], c.Out[0]
	switch {
	case src.DType == ir.String && dst.DType == ir.String:
		copy(dst.Text, src.Text)
		return nil
	case src.DType == ir.String:
		return parse(c, dst, src)
	case dst.DType == ir.String:
		format(c, dst, src)
		return nil
	}
	convert(c, dst, src)
	return nil
}

// rounding returns the attributes of Cast and CastLike.
func rounding(n *op.Node) narrow.Rounding {
	return narrow.Rounding{
		Saturate: n.Bool("saturate", true),
		InfIsNaN: n.Version < 24,
		Mode:     n.Text("round_mode", "up"),
	}
}

// convert writes the elements of src to dst, both numeric.
func convert(c *op.Call, dst, src *ir.Array) {
	stages := conversion(src.DType, dst.DType, rounding(c.Node))
	block.Parallel(c, int(src.Elems()), block.Grain, zipBytes, func(s block.Scratch, from, to int) {
		buf := [2][]byte{block.Take[uint8](&s, 8*block.Len), block.Take[uint8](&s, 8*block.Len)}
		for at := from; at < to; at += block.Len {
			n := min(block.Len, to-at)
			x := packed(src, at)
			for i, stage := range stages {
				y := buf[i%2]
				if i == len(stages)-1 {
					y = packed(dst, at)
				}
				stage(y, x, n)
				x = y
			}
		}
	})
}

// packed is a's payload from element at on, which starts at a byte boundary.
func packed(a *ir.Array, at int) []byte { return a.Data[int64(at)*a.DType.Bits()/8:] }

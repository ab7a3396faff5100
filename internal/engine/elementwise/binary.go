package elementwise

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/packedweight"
	"github.com/mcompress/mcompress/ir"
)

// A binary operator has two inputs of one type.
type binary struct {
	name   string
	since  int64
	types  block.Set
	result ir.DType // Undefined for that of the inputs
	run    func(*op.Call) error
	check  func(n *op.Node, a, b *ir.Array) error // may be nil
	pack   func(n *op.Node, in []*ir.Array, packed []op.Packed) op.Packed
}

var binaries = []binary{
	{name: "Add", since: 7, types: block.Numbers, run: runArithmetic},
	{name: "Sub", since: 7, types: block.Numbers, run: runArithmetic, pack: packedweight.Sub},
	{name: "Mul", since: 7, types: block.Numbers, run: runArithmetic, pack: packedweight.Mul},
	{name: "Div", since: 7, types: block.Numbers, run: runArithmetic, pack: packedweight.Div},
	{name: "Mod", since: 10, types: block.Numbers, run: runArithmetic, check: checkMod, pack: packedweight.Mod},
	{name: "PRelu", since: 7, types: block.Numbers, run: runArithmetic, check: checkPRelu},
	{name: "And", since: 7, types: block.Bool, run: runLogic},
	{name: "Or", since: 7, types: block.Bool, run: runLogic},
	{name: "Xor", since: 7, types: block.Bool, run: runLogic},
	{name: "BitwiseAnd", since: 18, types: block.Ints, run: runBits},
	{name: "BitwiseOr", since: 18, types: block.Ints, run: runBits},
	{name: "BitwiseXor", since: 18, types: block.Ints, run: runBits},
	{name: "BitShift", since: 11, types: block.Ints, run: runBits, check: checkShift},
	{name: "Equal", since: 7, types: block.Numbers | block.Bool | block.Text, result: ir.Bool, run: runComparison},
	{name: "Greater", since: 7, types: block.Numbers, result: ir.Bool, run: runComparison},
	{name: "GreaterOrEqual", since: 12, types: block.Numbers, result: ir.Bool, run: runComparison},
	{name: "Less", since: 7, types: block.Numbers, result: ir.Bool, run: runComparison},
	{name: "LessOrEqual", since: 12, types: block.Numbers, result: ir.Bool, run: runComparison},
}

func binaryOps() []op.Op {
	ops := make([]op.Op, len(binaries))
	for i, b := range binaries {
		ops[i] = op.Op{Type: b.name, Since: b.since, Shape: b.shape, Run: b.run, Work: zipWork, Pack: b.pack}
		if b.result == ir.Undefined {
			ops[i].InPlace = []int{0, 1}
		}
	}
	return ops
}

func (b binary) shape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := b.types.Tensor(in, 0, "A")
	if err != nil {
		return nil, err
	}
	y, err := block.Like(x, in, 1, "B")
	if err != nil {
		return nil, err
	}
	if b.check != nil {
		if err := b.check(n, x, y); err != nil {
			return nil, err
		}
	}
	result := b.result
	if result == ir.Undefined {
		result = x.DType
	}
	return broadcast(result, x, y)
}

// broadcast is the type of an output that all inputs are broadcast to.
func broadcast(dt ir.DType, in ...*ir.Array) ([]ir.Spec, error) {
	shapes := make([][]int64, len(in))
	for i, a := range in {
		shapes[i] = a.Shape
	}
	shape, err := op.BroadcastShapes(shapes...)
	if err != nil {
		return nil, err
	}
	return []ir.Spec{{DType: dt, Shape: shape}}, nil
}

// checkMod: the remainder of floats may have the sign of the divisor from opset 28 on.
func checkMod(n *op.Node, a, _ *ir.Array) error {
	if block.Floats.Has(a.DType) && !n.Bool("fmod", false) && n.Version < 28 {
		return fmt.Errorf("attribute fmod must be 1 for %s below opset 28", a.DType)
	}
	return nil
}

func checkPRelu(_ *op.Node, x, slope *ir.Array) error {
	shape, err := op.BroadcastShapes(x.Shape, slope.Shape)
	if err != nil {
		return err
	}
	if !slices.Equal(shape, x.Shape) {
		return fmt.Errorf("slope of shape %v does not broadcast to input of shape %v", slope.Shape, x.Shape)
	}
	return nil
}

func checkShift(n *op.Node, a, _ *ir.Array) error {
	if d := n.Text("direction", ""); d != "LEFT" && d != "RIGHT" {
		return fmt.Errorf("attribute direction is %q, want LEFT or RIGHT", d)
	}
	return nil
}

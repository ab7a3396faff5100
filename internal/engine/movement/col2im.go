package movement

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func col2Im() []op.Op {
	return []op.Op{{Type: "Col2Im", Since: 18, Shape: col2ImShape, Run: runCol2Im, Work: col2ImWork}}
}

// A fold is the geometry of blocks in an image, by axis.
type fold struct {
	image, block             []int64
	strides, pads, dilations []int64
	places                   []int64 // number of blocks along the axis
}

func newFold(n *op.Node, in []*ir.Array) (*ir.Array, *fold, error) {
	a, err := op.Arg(in, 0, "input")
	if err != nil {
		return nil, nil, err
	}
	if err := number.Check(a.DType); err != nil {
		return nil, nil, err
	}
	f := &fold{}
	if f.image, err = nonNegative(in, 1, "image_shape"); err != nil {
		return nil, nil, err
	}
	if f.block, err = nonNegative(in, 2, "block_shape"); err != nil {
		return nil, nil, err
	}
	rank := len(f.image)
	if len(a.Shape) != 3 || rank < 1 || len(f.block) != rank {
		return nil, nil, fmt.Errorf("input %s, image_shape %v and block_shape %v do not match", a, f.image, f.block)
	}
	f.strides, f.pads, f.dilations = orOnes(n, "strides", rank, 1), orOnes(n, "pads", 2*rank, 0),
		orOnes(n, "dilations", rank, 1)
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	blocks, pixels := op.Product(f.places), op.Product(f.block)
	if a.Shape[2] != blocks || pixels == 0 || a.Shape[1]%pixels != 0 {
		return nil, nil, fmt.Errorf("input is %s, image and blocks require [N,C*%d,%d]", a, pixels, blocks)
	}
	return a, f, nil
}

// orOnes is a list attribute, or n times def.
func orOnes(n *op.Node, name string, count int, def int64) []int64 {
	if n.Has(name) {
		return n.Ints(name)
	}
	xs := make([]int64, count)
	for i := range xs {
		xs[i] = def
	}
	return xs
}

// check also fills in places.
func (f *fold) check() error {
	rank := len(f.image)
	if len(f.strides) != rank || len(f.pads) != 2*rank || len(f.dilations) != rank {
		return fmt.Errorf("strides %v, pads %v or dilations %v do not have %d axes", f.strides, f.pads, f.dilations,
			rank)
	}
	for _, shape := range [][]int64{f.image, f.block} {
		if err := (ir.Spec{Shape: shape}).Valid(); err != nil {
			return err
		}
	}
	for i, size := range f.image {
		before, after := f.pads[i], f.pads[rank+i]
		if f.strides[i] < 1 || f.dilations[i] < 1 || f.dilations[i] > maxPad || before < 0 || after < 0 ||
			max(before, after) > maxPad {
			return fmt.Errorf("strides %v, pads %v or dilations %v are out of range", f.strides, f.pads, f.dilations)
		}
		if f.block[i] > 0 && f.dilations[i] > maxPad/f.block[i] {
			return fmt.Errorf("blocks of %v with dilations %v are too large", f.block, f.dilations)
		}
		space := size + before + after - f.dilations[i]*(f.block[i]-1) - 1
		if space < 0 {
			return fmt.Errorf("blocks of %v do not fit into an image of %v", f.block, f.image)
		}
		f.places = append(f.places, space/f.strides[i]+1)
	}
	return (ir.Spec{Shape: f.places}).Valid()
}

func col2ImShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, f, err := newFold(n, in)
	if err != nil {
		return nil, err
	}
	return op.One(a.DType, append([]int64{a.Shape[0], a.Shape[1] / op.Product(f.block)}, f.image...)...)
}

// integerFolds are the types whose sums are computed in the output, exactly and modulo the type's range, like those of
// ONNX's reference implementation: float64 rounds integers above 2^53.
var integerFolds = map[ir.DType]func(f *fold, dst, src *ir.Array){
	ir.Int8:   foldIntegers[int8],
	ir.Int16:  foldIntegers[int16],
	ir.Int32:  foldIntegers[int32],
	ir.Int64:  foldIntegers[int64],
	ir.Uint8:  foldIntegers[uint8],
	ir.Uint16: foldIntegers[uint16],
	ir.Uint32: foldIntegers[uint32],
	ir.Uint64: foldIntegers[uint64],
}

// col2ImWork is the memory of one image and one row of columns, as float64.
func col2ImWork(n *op.Node, in []*ir.Array, _ int) int64 {
	a, f, err := newFold(n, in)
	if err != nil || integerFolds[a.DType] != nil {
		return 0
	}
	return 8 * (op.Product(f.image) + op.Product(f.places))
}

func runCol2Im(c *op.Call) error {
	a, f, err := newFold(c.Node, c.In)
	if err != nil {
		return err
	}
	if foldExactly := integerFolds[a.DType]; foldExactly != nil {
		foldExactly(f, c.Out[0], a)
		return nil
	}
	work := ir.View[float64](&ir.Array{DType: ir.Double, Data: c.Work})
	size, pixels := int(op.Product(f.image)), int(op.Product(f.block))
	sum, row := work[:size], work[size:]
	// Blocks overlap: sums are float64 and rounded once, for types of fewer bits.
	for i := range int(a.Shape[0]*a.Shape[1]) / pixels {
		clear(sum)
		for p := range pixels {
			number.Read(row, a, (i*pixels+p)*len(row))
			addPixels(f, sum, row, p)
		}
		number.Write(c.Out[0], i*size, sum)
	}
	return nil
}

type foldable interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float64
}

func foldIntegers[T foldable](f *fold, dst, src *ir.Array) {
	x, y := ir.View[T](src), ir.View[T](dst)
	clear(y)
	pixels, blocks, size := int(op.Product(f.block)), int(op.Product(f.places)), int(op.Product(f.image))
	for i := range int(src.Shape[0] * src.Shape[1]) {
		addPixels(f, y[i/pixels*size:][:size], x[i*blocks:][:blocks], i%pixels)
	}
}

// addPixels sums row, which holds pixel p of every block, into the image.
func addPixels[T foldable](f *fold, sum, row []T, p int) {
	rank := len(f.image)
	first := make([]int64, rank) // position of the pixel of the first block
	for k, rest := rank-1, int64(p); k >= 0; k-- {
		first[k] = rest%f.block[k]*f.dilations[k] - f.pads[k]
		rest /= f.block[k]
	}
	at := make([]int64, rank)
	for _, x := range row {
		place, inside := int64(0), true
		for k := range rank {
			y := first[k] + at[k]*f.strides[k]
			inside = inside && y >= 0 && y < f.image[k]
			place = place*f.image[k] + y
		}
		if inside {
			sum[place] += x
		}
		for k := rank - 1; k >= 0; k-- {
			if at[k]++; at[k] < f.places[k] {
				break
			}
			at[k] = 0
		}
	}
}

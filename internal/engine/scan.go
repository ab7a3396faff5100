package engine

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A scanLayout holds the attributes of one Scan: from opset 9 along any axis, in opset 8 along axis 1 of batches.
type scanLayout struct {
	states, scans int
	inAxes        []int
	inBack        []bool
	outAxes       []int64
	outBack       []bool
	length        int64
	batched       bool // opset 8
}

// scanOf reads the attributes and checks them against the inputs.
func scanOf(s *step, in []*ir.Array) (*scanLayout, error) {
	body := s.bodies["body"]
	if body == nil {
		return nil, fmt.Errorf("attribute body is missing")
	}
	z := &scanLayout{batched: s.Version < 9, scans: int(s.Int("num_scan_inputs", 0))}
	if z.batched {
		in = in[1:]
	}
	z.states = len(body.inputs) - z.scans
	outs := len(body.outputs) - z.states
	if z.scans < 1 || z.states < 0 || outs < 0 || len(in) < len(body.inputs) {
		return nil, fmt.Errorf("num_scan_inputs %d does not fit a body of %d inputs and %d outputs", z.scans,
			len(body.inputs), len(body.outputs))
	}
	inDirections, outDirections := "scan_input_directions", "scan_output_directions"
	if z.batched {
		inDirections = "directions"
	}
	z.inBack, z.outBack = flags(s.Ints(inDirections), z.scans), flags(s.Ints(outDirections), outs)
	z.outAxes = padded(s.Ints("scan_output_axes"), outs)
	for k, axis := range padded(s.Ints("scan_input_axes"), z.scans) {
		a := in[z.states+k]
		if a == nil {
			return nil, fmt.Errorf("scan input %d is missing", k)
		}
		if z.batched {
			axis = 1
		}
		at, err := op.Axis(axis, len(a.Shape))
		if err != nil {
			return nil, fmt.Errorf("scan input %d: %w", k, err)
		}
		z.inAxes = append(z.inAxes, at)
		if k > 0 && z.length != a.Shape[at] {
			return nil, fmt.Errorf("scan inputs have lengths %d and %d", z.length, a.Shape[at])
		}
		z.length = a.Shape[at]
	}
	return z, nil
}

func padded(xs []int64, n int) []int64 {
	out := make([]int64, n)
	copy(out, xs)
	return out
}

func flags(xs []int64, n int) []bool {
	out := make([]bool, n)
	for i, x := range xs {
		if i < n {
			out[i] = x == 1
		}
	}
	return out
}

// planScan plans the body for one element of each scan input.
func (pl *planner) planScan(i int, s *step, in []*ir.Array) ([]ir.Spec, error) {
	z, err := scanOf(s, in[:s.NumIn])
	if err != nil || z.batched {
		return nil, op.ErrUnknown
	}
	var args []*ir.Array
	var states []ir.Spec
	for k, a := range in[:s.NumIn] {
		if a == nil {
			return nil, op.ErrUnknown
		}
		shape := a.Shape
		if k >= z.states {
			at := z.inAxes[k-z.states]
			shape = slices.Delete(slices.Clone(shape), at, at+1)
		} else {
			states = append(states, a.Spec())
		}
		args = append(args, &ir.Array{DType: a.DType, Shape: shape})
	}
	_, specs, err := pl.planBody(i, s, "body", args, in)
	if err != nil || !sameSpecs(specs[:z.states], states) {
		return nil, op.ErrUnknown
	}
	for k := range specs[z.states:] {
		o := &specs[z.states+k]
		at, err := op.Axis(z.outAxes[k], len(o.Shape)+1)
		if err != nil {
			return nil, err
		}
		o.Shape = slices.Insert(slices.Clone(o.Shape), at, z.length)
	}
	return specs, nil
}

func (b *bodies) scan() ([]*ir.Array, error) {
	in := b.c.In[:b.s.NumIn]
	z, err := scanOf(b.s, in)
	if err != nil {
		return nil, err
	}
	if !z.batched {
		return b.scanOne(z, in, z.length)
	}
	return b.scanBatch(z, in)
}

// scanOne scans one sequence of the given length.
func (b *bodies) scanOne(z *scanLayout, in []*ir.Array, length int64) ([]*ir.Array, error) {
	state := append([]*ir.Array(nil), in[:z.states]...)
	collected := make([]*stacker, len(z.outAxes))
	for k := range collected {
		collected[k] = &stacker{b: b, axis: z.outAxes[k], backward: z.outBack[k], capacity: length}
	}
	var last []*ir.Array // state of the previous iteration
	for t := range length {
		args := slices.Clone(state)
		for k, a := range in[z.states:] {
			at := t
			if z.inBack[k] {
				at = length - 1 - t
			}
			item, err := element(a, z.inAxes[k], at)
			if err != nil {
				return nil, err
			}
			args = append(args, item)
		}
		out, err := b.runBody("body", args)
		if err != nil {
			return nil, err
		}
		b.dropAll(last)
		state, last = out[:z.states], out[:z.states]
		for k, c := range collected {
			if err := c.add(out[z.states+k]); err != nil {
				return nil, fmt.Errorf("scan output %d: %w", k, err)
			}
		}
		b.dropAll(out[z.states:])
	}
	return b.finish(state, collected)
}

// scanBatch is opset 8: axis 0 is a batch, whose sequences may have different lengths.
func (b *bodies) scanBatch(z *scanLayout, in []*ir.Array) ([]*ir.Array, error) {
	var lengths []int64
	if in[0] != nil {
		var err error
		if lengths, err = op.Ints(in[0]); err != nil {
			return nil, err
		}
	}
	in = in[1:]
	batch := in[z.states].Shape[0]
	one := *z
	one.inAxes = make([]int, z.scans) // an element of the batch has its sequence axis first
	columns := make([]*stacker, z.states+len(z.outAxes))
	for k := range columns {
		columns[k] = &stacker{b: b, capacity: batch}
	}
	for n := range batch {
		items := make([]*ir.Array, len(in))
		for k, a := range in {
			var err error
			if a == nil {
				return nil, fmt.Errorf("input %d is missing", k+1)
			}
			if items[k], err = element(a, 0, n); err != nil {
				return nil, err
			}
		}
		length := z.length
		if n < int64(len(lengths)) {
			length = min(max(lengths[n], 0), z.length)
		}
		out, err := b.scanOne(&one, items, length)
		if err != nil {
			return nil, err
		}
		for k, a := range out {
			if k >= z.states {
				if a, err = b.lengthened(a, z.length); err != nil {
					return nil, err
				}
			}
			if err := columns[k].add(a); err != nil {
				return nil, err
			}
		}
	}
	out := make([]*ir.Array, len(columns))
	for k, c := range columns {
		var err error
		if out[k], err = c.result(); err != nil {
			return nil, err
		}
		if out[k] == nil {
			return nil, fmt.Errorf("the batch is empty")
		}
	}
	return out, nil
}

// lengthened pads a with zeros to n elements along its first axis.
func (b *bodies) lengthened(a *ir.Array, n int64) (*ir.Array, error) {
	if a.Shape[0] == n {
		return a, nil
	}
	spec := ir.Spec{DType: a.DType, Shape: slices.Clone(a.Shape)}
	spec.Shape[0] = n
	if err := op.Valid(spec); err != nil {
		return nil, err
	}
	if err := b.r.account.Check(op.Size(spec)); err != nil {
		return nil, err
	}
	out := ir.NewArray(spec.DType, spec.Shape...)
	copy(out.Data, a.Data)
	return out, nil
}

// element is a copy of a at one index of an axis, without that axis.
func element(a *ir.Array, axis int, at int64) (*ir.Array, error) {
	if axis >= len(a.Shape) || at < 0 || at >= a.Shape[axis] {
		return nil, fmt.Errorf("index %d is out of range for axis %d of %s", at, axis, a)
	}
	out := ir.NewArray(a.DType, slices.Delete(slices.Clone(a.Shape), axis, axis+1)...)
	outer, inner := op.Product(a.Shape[:axis]), op.Product(a.Shape[axis+1:])
	return out, move(outer, inner, func(o int64) (int64, int64) { return o, o*a.Shape[axis] + at }, out, a)
}

// move copies runs of inner elements: at returns for each run its position in to and in from.
func move(outer, inner int64, at func(o int64) (to, from int64), to, from *ir.Array) error {
	width := from.DType.Bits() / 8
	if from.DType != ir.String && width == 0 {
		return fmt.Errorf("elements of %s cannot be copied", from.DType)
	}
	for o := range outer {
		t, f := at(o)
		if from.DType == ir.String {
			copy(to.Text[t*inner:(t+1)*inner], from.Text[f*inner:])
			continue
		}
		copy(to.Data[t*inner*width:(t+1)*inner*width], from.Data[f*inner*width:])
	}
	return nil
}

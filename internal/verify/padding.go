package verify

import (
	"iter"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
)

// A Padding is the tokens of a run that do not count, by the attention masks among its inputs: models compute
// arbitrary numbers for them, which no user of the model reads.
type Padding struct {
	masks []tokenMask
	axes  map[string][]ir.Dim // declared, of inputs and outputs by name
}

// A tokenMask is one mask of which some element is 0.
type tokenMask struct {
	dim  ir.Dim  // of its axis of tokens
	size int64   // of that axis
	kept [][]int // by sample, the positions of the tokens that count
}

// NewPadding is that of a run of s on b; nil without padding.
func NewPadding(s Ports, b *dataset.Batch) *Padding {
	masks := masksOf(b)
	if masks == nil {
		return nil
	}
	p := &Padding{axes: map[string][]ir.Dim{}}
	for _, port := range slices.Concat(s.Inputs(), s.Outputs()) {
		if port.Type != nil {
			p.axes[port.Name] = port.Type.Shape
		}
	}
	for _, m := range masks {
		t, padded := tokenMask{size: int64(len(m.Rows[0])), kept: make([][]int, len(m.Rows))}, false
		if dims := p.axes[m.Name]; len(dims) == 2 {
			t.dim = dims[1]
		}
		for i, row := range m.Rows {
			for k, x := range row {
				if x != 0 {
					t.kept[i] = append(t.kept[i], k)
				}
			}
			padded = padded || len(t.kept[i]) < len(row)
		}
		if padded {
			p.masks = append(p.masks, t)
		}
	}
	if p.masks == nil {
		return nil
	}
	return p
}

// masksOf are the tokens that the data found to be no padding, under the name of an input of the same shape, or
// without token ids the attention masks.
func masksOf(b *dataset.Batch) []metric.Mask {
	a := b.Attended
	if a == nil || a.Elems() == 0 {
		return metric.Masks(b.Inputs, b.N)
	}
	m := metric.Mask{Rows: slices.Collect(slices.Chunk(all(a), int(a.Shape[1])))}
	for _, name := range slices.Sorted(maps.Keys(b.Inputs)) {
		if m.Name == "" && slices.Equal(b.Inputs[name].Shape, a.Shape) {
			m.Name = name
		}
	}
	return []metric.Mask{m}
}

// Ports are the inputs and outputs of a session.
type Ports interface {
	Inputs() []op.Port
	Outputs() []op.Port
}

// Parts are two values of the same shape without padding, a pair for each sample; the values themselves if none of
// their axes is that of the tokens. p may be nil.
func (p *Padding) Parts(name string, want, got *ir.Array) iter.Seq2[*ir.Array, *ir.Array] {
	return func(yield func(*ir.Array, *ir.Array) bool) {
		m, axis := p.axisOf(name, want)
		// Positions of elements of less than a byte cannot be copied.
		if m == nil || got.DType.Bits()%8 != 0 {
			yield(want, got)
			return
		}
		for i, kept := range m.kept {
			// A sample of padding alone has nothing to compare.
			if len(kept) > 0 && !yield(positions(want, i, axis, kept), positions(got, i, axis, kept)) {
				return
			}
		}
	}
}

// axisOf is the mask of the tokens of the value of that name and their axis, nil if it has none. By size alone the
// axis is the second one of values of three axes or more, or the third one behind that of heads; an axis whose
// declared name is that of the mask's axis takes precedence, one of another name is none.
func (p *Padding) axisOf(name string, a *ir.Array) (*tokenMask, int) {
	if p == nil || a.DType == ir.String || a.DType.Bits()%8 != 0 {
		return nil, 0
	}
	dims := p.axes[name]
	if len(dims) != len(a.Shape) {
		dims = make([]ir.Dim, len(a.Shape))
	}
	var found *tokenMask
	at := 0
	for k := 1; k < len(a.Shape); k++ {
		for i := range p.masks {
			m := &p.masks[i]
			named := dims[k].Param != "" && m.dim.Param != ""
			switch {
			case a.Shape[0] != int64(len(m.kept)) || a.Shape[k] != m.size:
			case named && dims[k].Param == m.dim.Param:
				return m, k
			case !named && found == nil && (k == 1 && len(a.Shape) > 2 || k == 2 && len(a.Shape) == 4):
				found, at = m, k
			}
		}
	}
	return found, at
}

// positions are some of the positions on an axis of sample i of a.
func positions(a *ir.Array, i, axis int, kept []int) *ir.Array {
	shape := slices.Clone(a.Shape)
	shape[0], shape[axis] = 1, int64(len(kept))
	y := ir.NewArray(a.DType, shape...)
	inner := int(ir.Spec{DType: a.DType, Shape: a.Shape[axis+1:]}.Bytes())
	outer := int(ir.Spec{DType: ir.Uint8, Shape: a.Shape[1:axis]}.Elems())
	from := a.Data[i*outer*int(a.Shape[axis])*inner:]
	to := y.Data
	for range outer {
		for _, k := range kept {
			copy(to[:inner], from[k*inner:])
			to = to[inner:]
		}
		from = from[int(a.Shape[axis])*inner:]
	}
	return y
}

package linear

import (
	"fmt"
	"math"

	"github.com/mcompress/mcompress/internal/engine/linear/attention"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// A mask is a tensor that broadcasts to [batch, heads, queries, keys]: of bool, where false masks a key, or of numbers
// that are added to scores.
type mask struct {
	*ir.Array
	batch, head, query, key int // strides, 0 where it broadcasts
	keys                    int // keys from there on are masked
}

// maskOf checks that a broadcasts to shape. shorter allows its last axis to be shorter than shape's, without
// broadcasting if it is 1.
func maskOf(a *ir.Array, shape [4]int64, shorter bool) (*mask, error) {
	m := &mask{Array: a, keys: int(shape[3])}
	ahead := len(shape) - len(a.Shape)
	if ahead < 0 {
		return nil, fmt.Errorf("mask %s has more axes than the scores %v", a, shape)
	}
	strides := op.Strides(a.Shape)
	for i, at := range []*int{&m.batch, &m.head, &m.query, &m.key} {
		if i < ahead {
			continue
		}
		switch d := a.Shape[i-ahead]; {
		case d == shape[i] || i == 3 && shorter && d < shape[i]:
			*at = int(strides[i-ahead])
		case d != 1:
			return nil, fmt.Errorf("mask %s does not broadcast to the scores %v", a, shape)
		}
	}
	if shorter && ahead < 4 {
		m.keys = int(min(shape[3], a.Shape[len(a.Shape)-1]))
	}
	return m, nil
}

// maskFor is m for one head of one batch; nil without a mask.
func maskFor[T attention.Float](m *mask, batch, head int) attention.Mask[T] {
	if m == nil {
		return nil
	}
	return maskAt[T](m, batch*m.batch+head*m.head)
}

// maskAt is the matrix of m that starts at base.
func maskAt[T attention.Float](m *mask, base int) attention.Mask[T] {
	apply := maskRow[T](m)
	return func(scores []T, query, key int) {
		n := min(max(m.keys-key, 0), len(scores))
		if n > 0 {
			apply(scores[:n], base+query*m.query+key*m.key)
		}
		hide(scores[n:])
	}
}

func hide[T attention.Float](scores []T) {
	for i := range scores {
		scores[i] = T(math.Inf(-1))
	}
}

// maskRow masks scores with the elements of m, starting at offset at.
func maskRow[T attention.Float](m *mask) func(scores []T, at int) {
	switch m.DType {
	case ir.Bool:
		open := ir.View[bool](m.Array)
		return func(scores []T, at int) {
			for j := range scores {
				if !open[at+j*m.key] {
					scores[j] = T(math.Inf(-1))
				}
			}
		}
	case ir.Float:
		if isNative[T](ir.Float) {
			bias := ir.View[float32](m.Array)
			return func(scores []T, at int) { addRow(any(scores).([]float32), bias[at:], m.key) }
		}
	}
	return func(scores []T, at int) { addNumbers(scores, m, at) }
}

// addRow adds x, whose elements have a stride of 0 or 1.
func addRow(scores, x []float32, stride int) {
	if stride == 0 {
		kernel.AddScalar(scores, scores, x[0])
		return
	}
	kernel.Add(scores, scores, x[:len(scores)])
}

// addNumbers adds elements of any type.
func addNumbers[T attention.Float](scores []T, m *mask, at int) {
	var bias [256]float64
	for len(scores) > 0 {
		n := min(len(scores), len(bias))
		if m.key == 0 {
			number.Read(bias[:1], m.Array, at)
			for j := range scores[:n] {
				scores[j] += T(bias[0])
			}
		} else {
			number.Read(bias[:n], m.Array, at)
			for j := range scores[:n] {
				scores[j] += T(bias[j])
			}
		}
		scores, at = scores[n:], at+n*m.key
	}
}

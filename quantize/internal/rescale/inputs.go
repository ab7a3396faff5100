package rescale

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// InputSizes are the maximum magnitudes of the weight and its sums of squares, by input channel.
func (l *Layer) InputSizes(ctx context.Context) (largest, squares []float64, err error) {
	largest, squares = make([]float64, l.Inputs), make([]float64, l.Inputs)
	err = pass.Scan(ctx, l.e.step.Eval, l.Weight.Const, func(w []float32, first int64) error {
		for i, v := range w {
			x, c := float64(v), l.in.channel(first+int64(i))
			largest[c] = max(largest[c], math.Abs(x))
			squares[c] += x * x
		}
		return nil
	})
	return largest, squares, err
}

// InputChannel is the input channel that element i of the weight is multiplied with.
func (l *Layer) InputChannel(i int64) int64 { return l.in.channel(i) }

// VisitInputs runs the model of s on calibration samples, and calls do for all elements x of the inputs of layers,
// those of one channel at a time. It returns why inputs of some layers give no statistics; what do has seen of them is
// of no use.
func VisitInputs(ctx context.Context, s *pass.Step, d *calibrate.Data, layers []*Layer,
	do func(l *Layer, channel int, x []float32)) (useless map[*Layer]pass.Reason, err error) {
	by, names := map[string][]*Layer{}, []string(nil)
	useless = map[*Layer]pass.Reason{}
	for _, l := range layers {
		name := l.Node.Input(0).Name
		// A value is observed once for all layers that read it.
		if by[name] == nil {
			names = append(names, name)
		}
		by[name] = append(by[name], l)
	}
	if len(names) == 0 {
		return useless, nil
	}
	return useless, d.Each(ctx, s, s.Model, names, func(name string, a *ir.Array) error {
		for _, l := range by[name] {
			if why := l.visit(a, do); why != "" {
				useless[l] = reasonAt(l.Node, pass.Inputs, name+" "+why)
			}
		}
		return nil
	})
}

// visit calls do for the elements of an input, or returns why it gives no statistics.
func (l *Layer) visit(a *ir.Array, do func(l *Layer, channel int, x []float32)) (useless string) {
	axis := len(a.Shape) - 1
	// Convolutions have channels on axis 1, products on the last one.
	if l.Spatial() {
		axis = 1
	}
	if a.Kind != ir.Dense || a.DType != ir.Float || axis < 0 || axis >= len(a.Shape) || a.Shape[axis] != l.Inputs {
		return fmt.Sprintf("is %s, and not floats of %d channels", a, l.Inputs)
	}
	inner := int((ir.Spec{Shape: a.Shape[axis+1:]}).Elems())
	x := ir.View[float32](a)
	if !calibrate.Finite(x) {
		return "has NaN or infinities"
	}
	for i := 0; inner > 0 && i < len(x); i += inner {
		do(l, i/inner%int(l.Inputs), x[i:i+inner])
	}
	return ""
}

// Overflow is the reason why the weight multiplied by f is not finite, none if it is. It reads the weight, once more
// than the result.
func (l *Layer) Overflow(ctx context.Context, f []float64) (pass.Reason, error) {
	factor, bits := 0.0, uint32(0)
	for _, x := range f {
		factor = max(factor, math.Abs(x))
	}
	// Factors up to 1 overflow nothing, so that the weight need not be read.
	if factor <= 1 {
		return pass.Reason{}, nil
	}
	err := pass.Scan(ctx, l.e.step.Eval, l.Weight.Const, func(w []float32, _ int64) error {
		bits = max(bits, kernel.AbsMaxBits(w))
		return nil
	})
	if w := float64(math.Float32frombits(bits)); err == nil && w <= math.MaxFloat32 &&
		w*factor > l.Weight.Const.DType.Largest() {
		return reasonAt(l.Node, pass.NotRepresented, fmt.Sprintf("weights up to %g times %g", w, factor)), nil
	}
	return pass.Reason{}, err
}

// Rounded is the matrix with inputs scaled by f, fake-quantized to 8 bits per output channel.
func (l *Layer) Rounded(ctx context.Context, f []float64) (*ir.Tensor, error) {
	peaks, err := l.OutputPeaks(ctx, [][]float64{f})
	if err != nil {
		return nil, err
	}
	steps := peaks[0]
	for i := range steps {
		steps[i] /= 127
	}
	t := l.Weight.Const
	v := view{scale: scale{l.in, l.in.spread(f)}, dt: t.DType, coarse: &scale{l.out, l.out.spread(steps)}}
	r := &ir.Recipe{Name: "round", In: []*ir.Tensor{t}, Out: []ir.Spec{t.Spec}}
	r.View = func(in []io.ReaderAt) io.ReaderAt {
		v := v
		v.in = in[0]
		return &v
	}
	return r.Derive()[0], nil
}

// OutputPeaks are the maximum magnitudes by output channel of the matrix with inputs scaled
// by each of fs. The weight is read once.
func (l *Layer) OutputPeaks(ctx context.Context, fs [][]float64) ([][]float64, error) {
	by, bits := make([][]float32, len(fs)), make([][]uint32, len(fs))
	for k, f := range fs {
		by[k], bits[k] = l.in.spread(f), make([]uint32, l.Outputs)
	}
	// Whether a row is an input channel, and its length.
	byInput, width := l.in.inner == l.Outputs && l.out.inner == 1, l.Inputs
	if byInput {
		width = l.Outputs
	}
	scaled := make([]float32, width)
	err := pass.Scan(ctx, l.e.step.Eval, l.Weight.Const, func(w []float32, first int64) error {
		for len(w) > 0 {
			row, col := first/width, first%width
			n := min(int64(len(w)), width-col)
			for k := range fs {
				if byInput {
					kernel.MulScalar(scaled[:n], w[:n], by[k][row])
					kernel.ColAbsMaxBits(bits[k][col:][:n], scaled[:n])
					continue
				}
				kernel.Mul(scaled[:n], w[:n], by[k][col:][:n])
				bits[k][row] = max(bits[k][row], kernel.AbsMaxBits(scaled[:n]))
			}
			w, first = w[n:], first+n
		}
		return nil
	})
	peaks := make([][]float64, len(fs))
	for k := range fs {
		for _, b := range bits[k] {
			peaks[k] = append(peaks[k], float64(math.Float32frombits(b)))
		}
	}
	return peaks, err
}

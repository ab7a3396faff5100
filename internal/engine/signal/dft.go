package signal

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// transforms are the Fourier transforms. Work holds input and output as float64.
func transforms() []op.Op {
	return []op.Op{
		{Type: "DFT", Since: 17, Shape: dftShape(axisAttribute), Run: runDFT(axisAttribute),
			Work: dftWork(axisAttribute)},
		{Type: "DFT", Since: 20, Shape: dftShape(axisInput), Run: runDFT(axisInput), Work: dftWork(axisInput)},
		{Type: "STFT", Since: 17, Shape: stftShape, Run: runSTFT, Work: stftWork},
	}
}

// axisOf returns the axis of DFT, from an attribute or an input.
type axisOf func(n *op.Node, in []*ir.Array) (int64, error)

func axisAttribute(n *op.Node, _ []*ir.Array) (int64, error) { return n.Int("axis", 1), nil }

func axisInput(_ *op.Node, in []*ir.Array) (int64, error) {
	if op.Opt(in, 2) == nil {
		return -2, nil
	}
	axis, err := scalar(in, 2, "axis")
	return int64(axis), err
}

// A dft is a transform of every line along one axis of a signal, whose last axis holds real and, if its size is two,
// imaginary parts.
type dft struct {
	signal       *ir.Array
	axis         int
	n            int64 // length of the transform
	bins         int64 // length of the result
	parts        int64 // parts of the result: 1 if real
	inverse, one bool
}

func newDFT(n *op.Node, in []*ir.Array, axis axisOf) (*dft, error) {
	a, err := tensor(in, 0, "input")
	if err != nil {
		return nil, err
	}
	rank := len(a.Shape)
	if rank < 2 || !a.DType.IsFloat() || a.Shape[rank-1] < 1 || a.Shape[rank-1] > 2 {
		return nil, fmt.Errorf("input is %s, want floats of shape [...,1] or [...,2]", a)
	}
	d := &dft{signal: a, parts: 2, inverse: n.Bool("inverse", false), one: n.Bool("onesided", false)}
	at, err := axis(n, in)
	if err != nil {
		return nil, err
	}
	if d.axis, err = op.Axis(at, rank); err != nil {
		return nil, err
	}
	if d.axis == rank-1 {
		return nil, errors.New("the axis is that of real and imaginary parts")
	}
	if d.one && (a.Shape[rank-1] == 2) != d.inverse {
		return nil, errors.New("onesided requires a real signal, or with inverse a complex spectrum")
	}
	// From n/2 + 1 bins, an even length is assumed unless dft_length says otherwise.
	if d.n = a.Shape[d.axis]; d.one && d.inverse {
		d.n = 2 * (d.n - 1)
	}
	if op.Opt(in, 1) != nil {
		if d.n, err = length(in, 1, "dft_length"); err != nil {
			return nil, err
		}
	}
	if d.n < 1 || d.n > maxLength {
		return nil, fmt.Errorf("a transform of length %d", d.n)
	}
	switch d.bins = d.n; {
	case d.one && d.inverse:
		d.parts = 1
	case d.one:
		d.bins = d.n/2 + 1
	}
	return d, nil
}

func (d *dft) shape() []int64 {
	shape := slices.Clone(d.signal.Shape)
	shape[d.axis] = d.bins
	shape[len(shape)-1] = d.parts
	return shape
}

func dftShape(axis axisOf) func(*op.Node, []*ir.Array) ([]ir.Spec, error) {
	return func(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
		d, err := newDFT(n, in, axis)
		if err != nil {
			return nil, err
		}
		return one(int64(d.signal.DType), d.shape()...)
	}
}

func dftWork(axis axisOf) func(*op.Node, []*ir.Array, int) int64 {
	return func(n *op.Node, in []*ir.Array, _ int) int64 {
		d, err := newDFT(n, in, axis)
		if err != nil {
			return 0
		}
		return 8 * (d.signal.Elems() + op.Product(d.shape()))
	}
}

func runDFT(axis axisOf) func(*op.Call) error {
	return func(c *op.Call) error {
		d, err := newDFT(c.Node, c.In, axis)
		if err != nil {
			return err
		}
		work, size := floats(c.Work), d.signal.Elems()
		x, y := work[:size], work[size:]
		number.Read(x, d.signal, 0)
		d.run(c.Pool, x, y)
		number.Write(c.Out[0], 0, y)
		return nil
	}
}

// run transforms each line of x into y.
func (d *dft) run(p *op.Pool, x, y []float64) {
	rank := len(d.signal.Shape)
	size, parts := int(d.signal.Shape[d.axis]), int(d.signal.Shape[rank-1])
	inner := int(op.Product(d.signal.Shape[d.axis+1 : rank-1]))
	lines := int(op.Product(d.signal.Shape[:d.axis])) * inner
	bins, outParts := int(d.bins), int(d.parts)
	overLines(p, lines, int(d.n), func(i int, fft *fourier.CmplxFFT, line []complex128) {
		outer, rest := i/inner, i%inner
		for k := range min(size, len(line)) {
			line[k] = sample(x, parts, (outer*size+k)*inner+rest)
		}
		d.transform(fft, line)
		to := y[(outer*bins*inner+rest)*outParts:]
		for k := range bins {
			to[k*inner*outParts] = real(line[k])
			if outParts == 2 {
				to[k*inner*outParts+1] = imag(line[k])
			}
		}
	})
}

// transform transforms line, which is padded with zeros, in place.
func (d *dft) transform(fft *fourier.CmplxFFT, line []complex128) {
	if !d.inverse {
		fft.Coefficients(line, line)
		return
	}
	n := len(line)
	if d.one { // the other half of the spectrum of a real signal is its conjugate
		for k := n/2 + 1; k < n; k++ {
			line[k] = complex(real(line[n-k]), -imag(line[n-k]))
		}
	}
	fft.Sequence(line, line)
	for k := range line {
		line[k] /= complex(float64(n), 0)
	}
}

// sample is the i-th of numbers that have an imaginary part after the real one if parts is 2.
func sample(x []float64, parts, i int) complex128 {
	if parts == 1 {
		return complex(x[i], 0)
	}
	return complex(x[2*i], x[2*i+1])
}

// overLines calls f for each line, with a transform of length n and n zeros.
func overLines(p *op.Pool, lines, n int, f func(i int, fft *fourier.CmplxFFT, line []complex128)) {
	const grain = 4 << 10 // minimum number of elements per task
	p.Rows(lines, max(1, grain/n), func(from, to int) {
		fft, line := fourier.NewCmplxFFT(n), make([]complex128, n)
		for i := from; i < to; i++ {
			clear(line)
			f(i, fft, line)
		}
	})
}

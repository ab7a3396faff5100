package signal

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// An stft is a transform of overlapping frames of a signal.
type stft struct {
	signal, window            *ir.Array // [batch,length,1 or 2], and [frame] or nil
	step, frame, frames, bins int64
}

func newSTFT(n *op.Node, in []*ir.Array) (*stft, error) {
	a, err := tensor(in, 0, "signal")
	if err != nil {
		return nil, err
	}
	if len(a.Shape) == 2 { // as ONNX Runtime accepts it
		a = &ir.Array{DType: a.DType, Shape: []int64{a.Shape[0], a.Shape[1], 1}, Data: a.Data}
	}
	if len(a.Shape) != 3 || !a.DType.IsFloat() || a.Shape[2] < 1 || a.Shape[2] > 2 {
		return nil, fmt.Errorf("signal is %s, want floats of shape [batch,length], [batch,length,1] or [batch,length,2]", a)
	}
	s := &stft{signal: a, frame: a.Shape[1]}
	if s.step, err = length(in, 1, "frame_step"); err != nil {
		return nil, err
	}
	if op.Opt(in, 2) != nil {
		if s.window, err = tensor(in, 2, "window"); err != nil {
			return nil, err
		}
		if len(s.window.Shape) != 1 {
			return nil, fmt.Errorf("window is %s, want rank 1", s.window)
		}
		s.frame = s.window.Shape[0]
	}
	if op.Opt(in, 3) != nil {
		if s.frame, err = length(in, 3, "frame_length"); err != nil {
			return nil, err
		}
	}
	if s.window != nil && s.window.Shape[0] != s.frame {
		return nil, fmt.Errorf("window is %s for frames of %d", s.window, s.frame)
	}
	if s.frame < 1 || s.frame > a.Shape[1] {
		return nil, fmt.Errorf("frames of %d in a signal of %d", s.frame, a.Shape[1])
	}
	s.frames, s.bins = (a.Shape[1]-s.frame)/s.step+1, s.frame
	if n.Bool("onesided", true) {
		if s.bins = s.frame/2 + 1; a.Shape[2] == 2 {
			return nil, errors.New("onesided requires a real signal")
		}
	}
	return s, nil
}

func stftShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	s, err := newSTFT(n, in)
	if err != nil {
		return nil, err
	}
	return one(int64(s.signal.DType), s.signal.Shape[0], s.frames, s.bins, 2)
}

// stftWork is the memory of the signal and the window as float64.
func stftWork(n *op.Node, in []*ir.Array, _ int) int64 {
	s, err := newSTFT(n, in)
	if err != nil {
		return 0
	}
	return 8 * (s.signal.Elems() + s.frame)
}

func runSTFT(c *op.Call) error {
	s, err := newSTFT(c.Node, c.In)
	if err != nil {
		return err
	}
	work, size := floats(c.Work), s.signal.Elems()
	x, window := work[:size], work[size:]
	number.Read(x, s.signal, 0)
	for i := range window {
		window[i] = 1
	}
	if s.window != nil {
		number.Read(window, s.window, 0)
	}
	length, parts := int(s.signal.Shape[1]), int(s.signal.Shape[2])
	overLines(c.Pool, int(s.signal.Shape[0]*s.frames), int(s.frame),
		func(i int, fft *fourier.CmplxFFT, line []complex128) {
			batch, frame := i/int(s.frames), i%int(s.frames)
			first := batch*length + frame*int(s.step)
			for k, w := range window {
				line[k] = sample(x, parts, first+k) * complex(w, 0)
			}
			fft.Coefficients(line, line)
			out := make([]float64, 0, 2*s.bins)
			for _, v := range line[:s.bins] {
				out = append(out, real(v), imag(v))
			}
			number.Write(c.Out[0], i*len(out), out)
		})
	return nil
}

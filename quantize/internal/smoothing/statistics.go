package smoothing

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/ir"
)

// statistics are the calibration statistics of one value's channels.
type statistics struct {
	largest, squares []float64 // by channel, over all runs
	runs             []extent  // a sample of the runs: every stride-th
	seen, stride     int
	weight           float64 // sum of the importance of all rows
	useless          string  // why there are none; empty if there are
	rows             int64
}

// mostRuns is the maximum number of extents kept: memory does not grow with the number of samples.
const mostRuns = 128

// An extent is the range of each channel in one run, and the importance of its rows.
type extent struct {
	rows   float64
	lo, hi []float32
}

// add adds a value of one run; its last axis is n channels. One that is not finite leaves no statistics.
func (s *statistics) add(a *ir.Array, n int64) {
	if a.Kind != ir.Dense || a.DType != ir.Float || len(a.Shape) == 0 || a.Shape[len(a.Shape)-1] != n {
		s.useless = fmt.Sprintf("is %s, and not floats of %d channels", a, n)
	} else if !calibrate.Finite(ir.View[float32](a)) {
		// For good: the extents of other runs would not hold for this one.
		s.useless = "has NaN or infinities"
	}
	if s.useless != "" {
		return
	}
	if s.largest == nil {
		s.largest, s.squares = make([]float64, n), make([]float64, n)
	}
	x := ir.View[float32](a)
	r := extent{lo: make([]float32, n), hi: make([]float32, n)}
	for row := range int64(len(x)) / n {
		x := x[row*n:][:n]
		weight := importance(x)
		s.rows++
		r.rows += weight
		for i, v := range x {
			r.lo[i], r.hi[i] = min(r.lo[i], v), max(r.hi[i], v)
			s.squares[i] += weight * float64(v) * float64(v)
		}
	}
	for i := range s.largest {
		s.largest[i] = max(s.largest[i], float64(-r.lo[i]), float64(r.hi[i]))
	}
	s.keep(r)
}

// keep stores every stride-th extent.
func (s *statistics) keep(r extent) {
	s.weight += r.rows
	s.stride = max(s.stride, 1)
	if s.seen%s.stride == 0 {
		s.runs = append(s.runs, r)
	}
	s.seen++
	if len(s.runs) <= mostRuns {
		return
	}
	// Every second one goes, and half as many are taken from here on: those that stay are evenly spaced over the
	// runs.
	s.stride *= 2
	for i := range (len(s.runs) + 1) / 2 {
		s.runs[i] = s.runs[2*i]
	}
	clear(s.runs[(len(s.runs)+1)/2:])
	s.runs = s.runs[:(len(s.runs)+1)/2]
}

// importance is the weight of a row: errors are relative to the row's size, otherwise a few
// large rows would dominate.
func importance(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	if sum == 0 {
		return 0
	}
	return 1 / sum
}

// noise is the mean squared error over all elements of all runs, times 12, with channels
// divided by f and each run quantized to 256 levels.
func (s *statistics) noise(f []float64) float64 {
	sum, kept := 0.0, 0.0
	for _, r := range s.runs {
		kept += r.rows
		lo, hi := 0.0, 0.0
		for i, v := range f {
			lo, hi = min(lo, float64(r.lo[i])/v), max(hi, float64(r.hi[i])/v)
		}
		step := (hi - lo) / 255
		sum += r.rows * step * step
	}
	if kept > 0 {
		// Extents are a sample of the runs, the squares are sums over all of them.
		sum *= s.weight / kept
	}
	return sum
}

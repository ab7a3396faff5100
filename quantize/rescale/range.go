package rescale

import "math"

// Largest are the largest magnitudes of the weight by input and by output channel.
func (l *Layer) Largest() (in, out []float64, err error) {
	in, out = make([]float64, l.Inputs), make([]float64, l.Outputs)
	err = l.e.c.Scan(l.Weight.Const, func(w []float32, first int64) error {
		for i, v := range w {
			at := first + int64(i)
			x, a, b := math.Abs(float64(v)), l.in.channel(at), l.out.channel(at)
			in[a], out[b] = max(in[a], x), max(out[b], x)
		}
		return nil
	})
	return in, out, err
}

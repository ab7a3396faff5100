package train

import (
	"math"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// cosine is 1 minus the cosine similarity of x and target; 1, without a gradient, if one of them is zero.
func cosine[T number](_ *op.Node, r row[T]) float64 {
	var xx, tt, xt float64
	for i, v := range r.x {
		x, t := float64(v), float64(r.target[i])
		xx += float64(x * x)
		tt += float64(t * t)
		xt += float64(x * t)
	}
	if xx == 0 || tt == 0 {
		clear(r.dx)
		return 1
	}
	length := math.Sqrt(xx) * math.Sqrt(tt)
	if r.dx != nil {
		// The gradient of -x·t/(|x||t|) is x·(x·t)/(|x|³|t|) - t/(|x||t|): of x, only the direction matters.
		along, across := r.factor*xt/(length*xx), r.factor/length
		for i, v := range r.x {
			r.dx[i] = T(float64(along*float64(v)) - float64(across*float64(r.target[i])))
		}
	}
	return 1 - xt/length
}

package random

import (
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func multinomialShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	a, err := op.Tensor(in, 0, "input")
	if err != nil {
		return nil, err
	}
	if len(a.Shape) != 2 || !a.DType.IsFloat() {
		return nil, fmt.Errorf("input is %s, want floats of shape [batch,classes]", a)
	}
	if a.Shape[1] == 0 {
		return nil, errors.New("no classes to sample from")
	}
	return one(n, ir.Int32, []int64{a.Shape[0], n.Int("sample_size", 1)}, ir.Int32, ir.Int64)
}

// runMultinomial samples each row from a stream of its own.
func runMultinomial(c *op.Call) error {
	if c.Out[0].Elems() == 0 {
		return nil
	}
	d, classes, samples := newNodeStreams(c), int(c.In[0].Shape[1]), int(c.Out[0].Shape[1])
	c.Pool.For(int(c.In[0].Shape[0]), func(row int) {
		sums := make([]float64, classes)
		number.Read(sums, c.In[0], row*classes)
		accumulate(sums)
		r := d.stream(row)
		for i := range samples {
			at := r.Float64() * sums[classes-1]
			// Greater, so that a class of probability 0 is never drawn. The last class is not searched: rounding may make at
			// the sum of all.
			class := sort.Search(classes-1, func(k int) bool { return sums[k] > at })
			number.Write(c.Out[0], row*samples+i, []float64{float64(class)})
		}
	})
	return nil
}

// accumulate converts log-probabilities, up to a constant, to cumulative sums.
func accumulate(logs []float64) {
	top := math.Inf(-1)
	for _, x := range logs {
		top = max(top, x)
	}
	sum := 0.0
	for i, x := range logs {
		sum += math.Exp(x - top)
		logs[i] = sum
	}
}

package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A counter is a stateless random number generator, SplitMix64 (Steele et al. 2014): number i is a mix of the seed and i times an odd
// constant. A part of a tensor can be drawn alone, and again.
type counter uint64

const golden = 0x9e3779b97f4a7c15

// counterOf returns the generator of attribute seed and the step number, input i.
func counterOf(c *op.Call, i int) counter {
	step := uint64(ir.View[int64](c.In[i])[0])
	return counter(mix(mix(uint64(c.Int("seed", 0))) + step*golden))
}

// at returns number i.
func (c counter) at(i uint64) uint64 { return mix(uint64(c) + (i+1)*golden) }

// below returns number i scaled to 0 to n-1.
func (c counter) below(i uint64, n int) int { return int((c.at(i) >> 32) * uint64(n) >> 32) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stepInput checks input i, the step number.
func stepInput(in []*ir.Array, i int) error {
	a, err := tensor(in, i, "step", ir.Int64)
	if err != nil {
		return err
	}
	if a.Elems() != 1 {
		return fmt.Errorf("input step is %s, want 1 element", a)
	}
	return nil
}

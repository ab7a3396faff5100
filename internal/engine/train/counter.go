package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A counter gives random numbers by their index, without a state: SplitMix64 (Steele et al. 2014), whose i-th number is a
// mix of the seed and i times an odd constant. So a piece of a tensor can be drawn alone, and drawn again.
type counter uint64

const golden = 0x9e3779b97f4a7c15

// counterOf is that of attribute seed and of the number of the step, which is input i.
func counterOf(c *op.Call, i int) counter {
	step := uint64(ir.View[int64](c.In[i])[0])
	return counter(mix(mix(uint64(c.Int("seed", 0))) + step*golden))
}

// at is number i.
func (c counter) at(i uint64) uint64 { return mix(uint64(c) + (i+1)*golden) }

// below is number i brought to 0 up to n-1.
func (c counter) below(i uint64, n int) int { return int((c.at(i) >> 32) * uint64(n) >> 32) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stepInput checks input i, the number of the step.
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

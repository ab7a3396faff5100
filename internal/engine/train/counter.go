package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Counter is a stateless random number generator, SplitMix64 (Steele et al. 2014): number i is a mix of the seed and
// i times an odd constant. A part of a tensor can be drawn alone, and again.
type Counter uint64

const golden = 0x9e3779b97f4a7c15

// NewCounter returns the generator of a seed and a step number.
func NewCounter(seed, step int64) Counter {
	return Counter(mix(mix(uint64(seed)) + uint64(step)*golden))
}

// counterOf returns the generator of attribute seed and of input i, the step and the micro-batch, each of which has n
// numbers: those of a step's micro-batches follow each other, as in one batch.
func counterOf(c *op.Call, i, n int) Counter {
	at := ir.View[int64](c.In[i])
	return NewCounter(c.Int("seed", 0), at[0]).From(uint64(at[1]) * uint64(n))
}

// From returns the generator whose number 0 is number i of c.
func (c Counter) From(i uint64) Counter { return c + Counter(i*golden) }

// At returns number i.
func (c Counter) At(i uint64) uint64 { return mix(uint64(c) + (i+1)*golden) }

// Below returns number i scaled to 0 to n-1.
func (c Counter) Below(i uint64, n int) int { return int((c.At(i) >> 32) * uint64(n) >> 32) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stepInput checks input i, the numbers of the step and of its micro-batch.
func stepInput(in []*ir.Array, i int) error {
	a, err := tensor(in, i, "step", ir.Int64)
	if err != nil {
		return err
	}
	if a.Elems() != 2 {
		return fmt.Errorf("input step is %s, want 2 elements", a)
	}
	return nil
}

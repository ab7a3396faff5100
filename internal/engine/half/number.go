package half

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// Largest is the largest finite Float16.
const Largest = 65504

// grain is how many numbers are worth handing to another worker.
const grain = 1 << 14

// Widen writes the values of x, which is exact.
func Widen(p *op.Pool, to []float32, x []uint16) {
	p.Rows(len(x), grain, func(from, end int) { kernel.F32FromF16(to[from:end], x[from:end]) })
}

// Narrow rounds x, to even where it lies half-way. What is too large becomes infinite if exceeds is set, else the largest number;
// NaN stays. x is not what it was then.
func Narrow(p *op.Pool, to []uint16, x []float32, exceeds bool) {
	p.Rows(len(x), grain, func(from, end int) { Store(to[from:end], x[from:end], exceeds) })
}

// Store is Narrow by the one who calls.
func Store(to []uint16, x []float32, exceeds bool) {
	if !exceeds {
		kernel.Clip(x, x, -Largest, Largest)
	}
	kernel.F16FromF32(to, x)
}

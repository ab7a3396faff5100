package half

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
)

// grain is the minimum number of values per task.
const grain = 1 << 14

// widen converts x to float32, exactly.
func widen(p *op.Pool, to []float32, x []uint16) {
	p.Rows(len(x), grain, func(from, end int) { kernel.F32FromF16(to[from:end], x[from:end]) })
}

// narrow rounds x to Float16, to nearest even. Values beyond the range become infinite if exceeds is set, else the
// largest finite value; NaN is kept.
func narrow(p *op.Pool, to []uint16, x []float32, exceeds bool) {
	p.Rows(len(x), grain, func(from, end int) { Store(to[from:end], x[from:end], exceeds) })
}

// Store is narrow on the calling goroutine.
func Store(to []uint16, x []float32, exceeds bool) {
	if exceeds {
		kernel.F16FromF32(to, x)
	} else {
		kernel.F16Saturated(to, x)
	}
}

package pass

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// Block is the number of elements that methods read at a time: one ir.CopyBuffer of float32.
const Block = ir.CopyBuffer / 4

// Floats reads a float tensor's payload as float32, whatever its type is.
type Floats struct {
	r   io.ReaderAt
	dt  ir.DType
	raw []byte
}

// NewFloats reads elements of type dt from r.
func NewFloats(r io.ReaderAt, dt ir.DType) *Floats { return &Floats{r: r, dt: dt} }

// Read fills dst with the elements from first on. float64 is rounded to float32.
func (f *Floats) Read(dst []float32, first int64) error {
	// Without a copy: float32 is what dst holds.
	if f.dt == ir.Float {
		return ir.ReadFull(f.r, kernel.Bytes(dst), first*4)
	}
	size := f.dt.Bits() / 8
	n := int64(len(dst)) * size
	if int64(cap(f.raw)) < n {
		f.raw = make([]byte, n)
	}
	raw := f.raw[:n]
	if err := ir.ReadFull(f.r, raw, first*size); err != nil {
		return err
	}
	switch f.dt {
	case ir.Float16:
		kernel.F32FromF16(dst, kernel.Words[uint16](raw))
	case ir.BFloat16:
		kernel.F32FromBF16(dst, kernel.Words[uint16](raw))
	case ir.Double:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[i*8:])))
		}
	default:
		return fmt.Errorf("%s is not a supported float type", f.dt)
	}
	return nil
}

// Scan calls do with t's elements, block by block in order. x is valid during the call.
func Scan(ctx context.Context, e *ir.Eval, t *ir.Tensor, do func(x []float32, first int64) error) error {
	r, err := e.Open(ctx, t)
	if err != nil {
		return err
	}
	f := NewFloats(r, t.DType)
	n := t.Elems()
	buf := make([]float32, min(n, Block))
	for i := int64(0); i < n; i += Block {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := buf[:min(Block, n-i)]
		if err := f.Read(x, i); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if err := do(x, i); err != nil {
			return err
		}
	}
	return nil
}

// Parallel calls do for 0 to n-1 on worker threads, in this order, and waits for all. After an error, or the end of
// ctx, it starts no more.
func Parallel(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(max(1, workers), n) {
		g.Go(func() error {
			// One counter for all workers: indices are taken in order, by whoever is free.
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := callGuarded(ctx, do, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// callGuarded calls do for i. A panic, which would end the process from a goroutine, is its error.
func callGuarded(ctx context.Context, do func(ctx context.Context, i int) error, i int) (err error) {
	defer ir.Guard(&err)
	return do(ctx, i)
}

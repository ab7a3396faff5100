package weightonly

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/pass"
)

// columns reads columns of a matrix.
type columns struct {
	*matrix
	floats    *pass.Floats
	w, turned []float32
}

func (s *gptqRun) columns(ctx context.Context, l *matrix) (*columns, error) {
	r, err := s.step.Eval.Open(ctx, l.weight.Const)
	return &columns{matrix: l, floats: pass.NewFloats(r, l.weight.Const.DType)}, err
}

// read is n columns from col on, K×n, until the next call.
func (c *columns) read(ctx context.Context, col, n int) ([]float32, error) {
	c.w = slices.Grow(c.w[:0], c.k*n)[:c.k*n]
	rows, cols, from, stride := c.k, n, col, c.matrix.n
	if c.transposed {
		rows, cols, from = 1, c.k*n, col*c.k
	}
	for i := range rows {
		if err := c.floats.Read(c.w[i*cols:][:cols], int64(from+i*stride)); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", c.weight.Const.Name, err)
		}
	}
	if !c.transposed {
		return c.w, ctx.Err()
	}
	c.turned = slices.Grow(c.turned[:0], c.k*n)[:c.k*n]
	kernel.Transpose(c.turned, c.w, n, c.k)
	return c.turned, ctx.Err()
}

// read is the matrix K×N.
func (s *gptqRun) read(ctx context.Context, l *matrix) ([]float32, error) {
	c, err := s.columns(ctx, l)
	if err != nil {
		return nil, err
	}
	return c.read(ctx, 0, l.n)
}

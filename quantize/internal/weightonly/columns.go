package weightonly

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/pass"
)

// columns reads columns of a matrix.
type columns struct {
	*matrix
	r                 io.ReaderAt
	workers           int
	w, transposedRows []float32
}

func (s *gptqRun) columns(ctx context.Context, l *matrix) (*columns, error) {
	r, err := s.step.Eval.Open(ctx, l.weight.Const)
	return &columns{matrix: l, r: r, workers: s.step.Env.Workers}, err
}

// readAtOnce is the number of elements that a worker reads at a time, if they are contiguous.
const readAtOnce = 256 << 10

// read is n columns from col on, K×n, until the next call.
func (c *columns) read(ctx context.Context, col, n int) ([]float32, error) {
	c.w = slices.Grow(c.w[:0], c.k*n)[:c.k*n]
	// A row of the given columns at a time; whole columns of a transposed matrix, and all columns, are contiguous.
	run, from, stride := n, col, c.matrix.n
	switch {
	case c.transposed:
		run, from, stride = readAtOnce, col*c.k, readAtOnce
	case n == c.matrix.n:
		run, stride = readAtOnce, readAtOnce
	}
	err := pass.Parallel(ctx, c.workers, (len(c.w)+run-1)/run, func(_ context.Context, i int) error {
		floats := pass.NewFloats(c.r, c.weight.Const.DType)
		return floats.Read(c.w[i*run:min((i+1)*run, len(c.w))], int64(from+i*stride))
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", c.weight.Const.Name, err)
	}
	if !c.transposed {
		return c.w, nil
	}
	c.transposedRows = slices.Grow(c.transposedRows[:0], c.k*n)[:c.k*n]
	kernel.Transpose(c.transposedRows, c.w, n, c.k)
	return c.transposedRows, nil
}

// read is the matrix K×N.
func (s *gptqRun) read(ctx context.Context, l *matrix) ([]float32, error) {
	c, err := s.columns(ctx, l)
	if err != nil {
		return nil, err
	}
	return c.read(ctx, 0, l.n)
}

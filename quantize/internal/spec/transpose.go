package spec

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/pass"
)

// panel bounds the part of a matrix that is in memory while it is transposed: 8 MiB of float32.
func (l PieceLimit) panel() int64 { return 8 * l.Elems() }

// panelCols is how many columns are transposed at a time.
func (c *PerChannel) panelCols() int64 {
	rows, cols := c.Shape[0], c.Shape[1]
	return min(cols, max(16, c.Layout.limit.panel()/max(1, rows)))
}

// quantizeTransposed quantizes the weight row by row and writes quantized values column by column. A matrix that fits
// into one panel is read once.
func (c *PerChannel) quantizeTransposed(ctx context.Context, in io.ReaderAt, out io.Writer) (*QParams, error) {
	rows, cols, width := c.Shape[0], c.Shape[1], c.panelCols()
	f := pass.NewFloats(in, c.Weight.DType)
	x, freeX := c.Buffers.takeFloats(rows * width)
	defer freeX()
	quantized, freeQuantized := c.Buffers.takeBytes(rows * width)
	defer freeQuantized()
	transposed, freeTurned := c.Buffers.takeBytes(rows * width)
	defer freeTurned()
	var a *QParams
	var err error
	// The first panel has a part of each row only, which does not show the range of a row.
	if width < cols {
		if a, err = ObserveQParams(ctx, in, c.Weight, c.Layout, c.Spec); err != nil {
			return nil, err
		}
	}
	for at := int64(0); at < cols; at += width {
		n := min(width, cols-at)
		if err := readPanel(ctx, f, x, rows, cols, at, n); err != nil {
			return nil, err
		}
		if a == nil {
			if a, err = c.observePanel(x); err != nil {
				return nil, err
			}
		}
		for r := range rows {
			i := r % c.Layout.NumScales() // one scale, or one for each row
			kernel.Quantize(quantized[r*n:][:n], x[r*n:][:n], a.Scale[i], a.zeroPointOf(c.Spec, i), c.Spec.Levels())
		}
		kernel.TransposeBytes(transposed[:rows*n], quantized[:rows*n], int(rows), int(n))
		if _, err := out.Write(transposed[:rows*n]); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// observePanel computes the scales of a matrix that is in memory.
func (c *PerChannel) observePanel(x []float32) (*QParams, error) {
	m := newMinMaxObserver(c.Layout.NumScales(), c.Spec)
	err := c.Layout.segments(func(q segment) error {
		m.observe(c.Layout, q, x[q.at:][:q.n])
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m.all(c.Spec, c.Weight.Name)
}

// readPanel reads columns [at, at+n) of a matrix into x, row after row.
func readPanel(ctx context.Context, f *pass.Floats, x []float32, rows, cols, at, n int64) error {
	if n == cols {
		return f.Read(x[:rows*cols], 0)
	}
	for r := range rows {
		if err := f.Read(x[r*n:][:n], r*cols+at); err != nil {
			return err
		}
	}
	return ctx.Err()
}

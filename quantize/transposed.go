package quantize

import (
	"context"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/pass"
)

// panelElems bounds the part of a matrix that is held to turn it: 8 MiB of float32.
const panelElems = 2 << 20

// panel is how many columns of t are turned at a time.
func (c *coding) panel() int64 {
	rows, cols := c.shape[0], c.shape[1]
	return min(cols, max(16, panelElems/max(1, rows)))
}

// transposed quantizes the matrix t row by row and writes the codes column by column.
// A matrix that fits into one panel is read once.
func (c *coding) transposed(ctx context.Context, in io.ReaderAt, out io.Writer) (*affine, error) {
	rows, cols, width := c.shape[0], c.shape[1], c.panel()
	f := pass.NewFloats(in, c.t.DType)
	x, freeX := c.buffers.takeFloats(rows * width)
	defer freeX()
	codes, freeCodes := c.buffers.takeBytes(rows * width)
	defer freeCodes()
	turned, freeTurned := c.buffers.takeBytes(rows * width)
	defer freeTurned()
	var a *affine
	var err error
	if width < cols {
		if a, err = measure(ctx, in, c.t, c.g, c.s); err != nil {
			return nil, err
		}
	}
	for at := int64(0); at < cols; at += width {
		n := min(width, cols-at)
		if err := readPanel(ctx, f, x, rows, cols, at, n); err != nil {
			return nil, err
		}
		if a == nil {
			if a, err = c.rowScales(x); err != nil {
				return nil, err
			}
		}
		for r := range rows {
			i := r % c.g.scales() // one scale, or one for each row
			kernel.Quantize(codes[r*n:][:n], x[r*n:][:n], a.scale[i], a.zeroOf(c.s, i), c.s.codes())
		}
		kernel.TransposeBytes(turned[:rows*n], codes[:rows*n], int(rows), int(n))
		if _, err := out.Write(turned[:rows*n]); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// rowScales measures a matrix that is held as a whole.
func (c *coding) rowScales(x []float32) (*affine, error) {
	m := newRanges(c.g.scales(), c.s)
	err := c.g.runs(func(q run) error {
		m.add(c.g, q, x[q.at:][:q.n])
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m.affine(c.s, c.t.Name)
}

// readPanel reads columns [at, at+n) of a matrix into x, rows close together.
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

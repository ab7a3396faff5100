package palette

import (
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/pass"
)

// codebooks finds the codebooks of a weight, those of a panel of neighbouring groups at a time, from samples of its values.
type codebooks struct {
	trainer
	floats   *pass.Floats
	peak     float32
	inverse  float32
	exact    bool // the entries are all values of the weight, and no scale changes them
	all      []*codebook
	from, to int64 // the groups of all
	stored   []float32
	buf      []float32
}

const (
	// panelElems is about the number of elements in memory while codebooks are found.
	panelElems = 1 << 19
	// sampleElems is about the number of elements that codebooks of up to 16 entries are found from; more entries need more.
	sampleElems = 1 << 15
	// runElems is about the number of consecutive elements of a sample.
	runElems = 1 << 10
)

func newCodebooks(l *Layout, f *pass.Floats, o observation) *codebooks {
	c := &codebooks{trainer: trainer{l, scaleTable()}, floats: f, peak: 1, inverse: 1}
	if o.distinct != nil {
		entries := make([]float32, l.Entries)
		for i := range entries {
			entries[i] = o.distinct[min(i, len(o.distinct)-1)]
		}
		only := newCodebook(entries, l.Block > 0)
		for range l.Groups {
			c.stored = append(c.stored, entries...)
		}
		c.exact, c.all, c.to = true, []*codebook{only}, l.Groups
		return c
	}
	c.peak, c.inverse = o.peak, 1/o.peak
	return c
}

// sample reads elements relative to the maximum magnitude.
func (c *codebooks) sample(x []float32, first int64) error {
	if err := c.floats.Read(x, first); err != nil || c.exact {
		return err
	}
	for i := range x {
		x[i] *= c.inverse
	}
	return nil
}

// at is the codebook of element i, and the first element after i that may have another one; elements after the last have its codebook.
func (c *codebooks) at(i int64) (*codebook, int64, error) {
	if i >= c.Elems {
		book, _, err := c.at(c.Elems - 1)
		return book, c.padded(), err
	}
	g, end := c.group(i)
	if end == c.Elems {
		end = c.padded()
	}
	if c.exact {
		return c.all[0], c.padded(), nil
	}
	for g >= c.to {
		if err := c.trainPanel(); err != nil {
			return nil, 0, err
		}
	}
	return c.all[g-c.from], end, nil
}

// trainPanel finds the codebooks of the groups after the last ones. With one run of elements each, earlier groups are not needed any more.
func (c *codebooks) trainPanel() error {
	rows, limit := c.sampledRows()
	n := min(c.Groups-c.to, max(1, panelElems/max(1, rows*c.Inner)))
	if c.Outer == 1 {
		c.all, c.from = c.all[:0], c.to
	}
	if end := min(c.Elems, (c.to+1)*c.Inner); c.Outer == 1 && end-c.to*c.Inner > limit {
		x, err := c.spread(c.to*c.Inner, end, limit)
		if err != nil {
			return err
		}
		c.add(x)
		return nil
	}
	samples := make([][]float32, n)
	for r := range rows {
		row := r * c.Outer / rows
		first := (row*c.Groups + c.to) * c.Inner
		x := c.buffer(min(n*c.Inner, c.Elems-first))
		if err := c.sample(x, first); err != nil {
			return err
		}
		for g := range samples {
			at := int64(g) * c.Inner
			samples[g] = append(samples[g], x[at:min(at+c.Inner, int64(len(x)))]...)
		}
	}
	for _, x := range samples {
		c.add(x)
	}
	return nil
}

// sampledRows is the number of rows of Outer that are read, and the number of elements of a sample.
func (c *codebooks) sampledRows() (rows, limit int64) {
	limit = sampleElems * max(1, int64(c.Entries)/16)
	return min(c.Outer, ceilDiv(limit, c.Inner)), limit
}

// spread reads about n of the elements from first to end, in runs of whole blocks, evenly spaced.
func (c *codebooks) spread(first, end, n int64) ([]float32, error) {
	block := max(1, c.Block)
	run := max(1, runElems/block) * block
	x, runs := c.buffer(n/run*run), n/run
	for i := range runs {
		if err := c.sample(x[i*run:][:run], first+(end-first-run)/block*i/max(1, runs-1)*block); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (c *codebooks) buffer(n int64) []float32 {
	if int64(cap(c.buf)) < n {
		c.buf = make([]float32, n)
	}
	return c.buf[:n]
}

// add finds the codebook of the next group from a sample.
func (c *codebooks) add(x []float32) {
	book := c.train(x)
	for _, e := range book.entries {
		c.stored = append(c.stored, e*c.peak)
	}
	c.all, c.to = append(c.all, book), c.to+1
}

// writeTo writes the entries of all codebooks.
func (c *codebooks) writeTo(w io.Writer) error {
	_, err := w.Write(kernel.Bytes(c.stored))
	return err
}

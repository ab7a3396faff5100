package palette

import (
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/pass"
)

// codebooks finds the codebooks of a weight, those of a panel of neighbouring groups at a time, from samples of its
// values.
type codebooks struct {
	trainer
	importance *importance
	floats     *pass.Floats
	peak       float32
	over       float32 // 1 / peak
	exact      bool    // the entries are all values of the weight, and no scale changes them
	all        []*codebook
	from, to   int64 // the groups of all
	stored     []float32
	buf        values
}

const (
	// panelElems is about the number of elements in memory while codebooks are found.
	panelElems = 1 << 19
	// sampleElems is about the number of elements that codebooks of up to 16 entries are found from; more entries need
	// more.
	sampleElems = 1 << 15
	// runElems is about the number of consecutive elements of a sample.
	runElems = 1 << 10
)

func newCodebooks(e *encoding, f *pass.Floats, o observation) *codebooks {
	l := e.Layout
	c := &codebooks{trainer: trainer{l, scaleTable()}, importance: e.importance, floats: f, peak: 1}
	// A weight with few distinct values is stored exactly.
	if o.distinct != nil {
		entries := make([]float32, l.Entries)
		for i := range entries {
			entries[i] = o.distinct[min(i, len(o.distinct)-1)]
		}
		only := newCodebook(entries, nil)
		for range l.Groups {
			c.stored = append(c.stored, entries...)
		}
		c.exact, c.all, c.to = true, []*codebook{only}, l.Groups
		return c
	}
	c.peak, c.over = o.peak, 1/o.peak
	return c
}

// newValues are n elements.
func (c *codebooks) newValues(n int64) values {
	v := values{x: make([]float32, n)}
	if c.importance != nil {
		v.important = make([]float32, n)
	}
	return v
}

// read reads elements relative to the maximum magnitude.
func (c *codebooks) read(v values, first int64) error {
	if err := c.floats.Read(v.x, first); err != nil || c.exact {
		return err
	}
	kernel.MulScalar(v.x, v.x, c.over)
	if c.importance != nil {
		c.importance.write(v.important, first)
	}
	return nil
}

// at is the codebook of element i, and the first element after i that may have another one; elements after the last
// have its codebook.
func (c *codebooks) at(i int64) (*codebook, int64, error) {
	// Padding has the codebook of the last element, so that it needs none of its own.
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

// trainPanel finds the codebooks of the groups after the last ones. With one run of elements each, earlier groups are
// not needed any more.
func (c *codebooks) trainPanel() error {
	rows, limit := c.sampledRows()
	// As many groups as fit into memory, so that rows are read in long runs.
	n := min(c.Groups-c.to, max(1, panelElems/max(1, rows*c.Inner)))
	if c.Outer == 1 {
		// Elements of earlier groups have been encoded: groups follow one another in the file.
		c.all, c.from = c.all[:0], c.to
	}
	if end := min(c.Elems, (c.to+1)*c.Inner); c.Outer == 1 && end-c.to*c.Inner > limit {
		v, err := c.spread(c.to*c.Inner, end, limit)
		if err != nil {
			return err
		}
		c.add(v)
		return nil
	}
	samples := make([]values, n)
	for r := range rows {
		row := r * c.Outer / rows
		first := (row*c.Groups + c.to) * c.Inner
		v := c.buffer(min(n*c.Inner, c.Elems-first))
		if err := c.read(v, first); err != nil {
			return err
		}
		for g := range samples {
			at := int64(g) * c.Inner
			samples[g] = samples[g].join(v.part(at, min(at+c.Inner, int64(len(v.x)))))
		}
	}
	for _, v := range samples {
		c.add(v)
	}
	return nil
}

// sampledRows is the number of rows of Outer that are read, and the number of elements of a sample.
func (c *codebooks) sampledRows() (rows, limit int64) {
	limit = sampleElems * max(1, int64(c.Entries)/16)
	return min(c.Outer, ceilDiv(limit, c.Inner)), limit
}

// spread reads about n of the elements from first to end, in runs of whole blocks, evenly spaced.
func (c *codebooks) spread(first, end, n int64) (values, error) {
	block := max(1, c.Block)
	run := max(1, runElems/block) * block
	v, runs := c.buffer(n/run*run), n/run
	for i := range runs {
		if err := c.read(v.part(i*run, (i+1)*run), first+(end-first-run)/block*i/max(1, runs-1)*block); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (c *codebooks) buffer(n int64) values {
	if int64(len(c.buf.x)) < n {
		c.buf = c.newValues(n)
	}
	return c.buf.part(0, n)
}

// add finds the codebook of the next group from a sample.
func (c *codebooks) add(v values) {
	book := c.train(v)
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

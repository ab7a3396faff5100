package distill

import (
	"errors"
	"os"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A teacherCache stores the targets of each sample in files, one per term of the loss.
type teacherCache struct {
	folder  string
	files   []*os.File // nil for terms without teachers
	shapes  [][]int64  // of the target of one sample
	present map[int]bool
}

func (c *teacherCache) has(samples []int) bool {
	return !slices.ContainsFunc(samples, func(i int) bool { return !c.present[i] })
}

// write stores the targets of samples. It stores nothing if the first axis of one is not the batch axis.
func (c *teacherCache) write(targets []*ir.Array, samples []int) error {
	for _, a := range targets {
		// Values without a batch axis, such as flattened tokens, do not divide into samples: the teacher runs for each
		// batch.
		if a != nil && (len(a.Shape) == 0 || a.Shape[0] != int64(len(samples)) || a.DType != ir.Float) {
			return nil
		}
	}
	if c.files == nil {
		if err := c.create(targets); err != nil {
			return err
		}
	}
	for k, a := range targets {
		if a == nil {
			continue
		}
		size := int64(len(a.Data) / len(samples))
		for i, s := range samples {
			// At a place by the number of the sample: files are sparse until all of them are known, and need no index.
			if _, err := c.files[k].WriteAt(a.Data[int64(i)*size:][:size], int64(s)*size); err != nil {
				return err
			}
		}
	}
	for _, s := range samples {
		// After all terms: a sample is known once each of its targets is in a file.
		c.present[s] = true
	}
	return nil
}

func (c *teacherCache) create(targets []*ir.Array) (err error) {
	c.files, c.shapes = make([]*os.File, len(targets)), make([][]int64, len(targets))
	for k, a := range targets {
		if a == nil {
			continue
		}
		c.shapes[k] = a.Shape[1:]
		if c.files[k], err = os.CreateTemp(c.folder, "teacher-"); err != nil {
			return err
		}
	}
	return nil
}

func (c *teacherCache) read(samples []int) ([]*ir.Array, error) {
	out := make([]*ir.Array, len(c.files))
	for k, f := range c.files {
		if f == nil {
			continue
		}
		a := ir.NewArray(ir.Float, append([]int64{int64(len(samples))}, c.shapes[k]...)...)
		size := int64(len(a.Data) / len(samples))
		for i, s := range samples {
			if _, err := f.ReadAt(a.Data[int64(i)*size:][:size], int64(s)*size); err != nil {
				return nil, err
			}
		}
		out[k] = a
	}
	return out, nil
}

func (c *teacherCache) close() error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, f := range c.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

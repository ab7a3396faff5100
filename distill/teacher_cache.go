package distill

import (
	"errors"
	"os"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A teacherCache stores the teacher's outputs per sample in files, one per value.
type teacherCache struct {
	folder string
	files  []*os.File
	shapes [][]int64 // of a value of one sample
	known  map[int]bool
}

func (c *teacherCache) has(samples []int) bool {
	return !slices.ContainsFunc(samples, func(i int) bool { return !c.known[i] })
}

// write stores the outputs of samples. It stores nothing if the first axis of a value is not the batch axis.
func (c *teacherCache) write(values []string, out map[string]*ir.Array, samples []int) error {
	for _, name := range values {
		if a := out[name]; len(a.Shape) == 0 || a.Shape[0] != int64(len(samples)) || a.DType != ir.Float {
			return nil
		}
	}
	for k, name := range values {
		if k == len(c.files) {
			f, err := os.CreateTemp(c.folder, "teacher-")
			if err != nil {
				return err
			}
			c.files, c.shapes = append(c.files, f), append(c.shapes, out[name].Shape[1:])
		}
		size := int64(len(out[name].Data) / len(samples))
		for i, s := range samples {
			if _, err := c.files[k].WriteAt(out[name].Data[int64(i)*size:][:size], int64(s)*size); err != nil {
				return err
			}
		}
	}
	for _, s := range samples {
		c.known[s] = true
	}
	return nil
}

func (c *teacherCache) read(values []string, samples []int) (map[string]*ir.Array, error) {
	out := map[string]*ir.Array{}
	for k, name := range values {
		a := ir.NewArray(ir.Float, append([]int64{int64(len(samples))}, c.shapes[k]...)...)
		size := int64(len(a.Data) / len(samples))
		for i, s := range samples {
			if _, err := c.files[k].ReadAt(a.Data[int64(i)*size:][:size], int64(s)*size); err != nil {
				return nil, err
			}
		}
		out[name] = a
	}
	return out, nil
}

func (c *teacherCache) close() error {
	if c == nil {
		return nil
	}
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

package dataset

import (
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// ReadArrays reads all arrays of an .npz file into memory, by their names.
func ReadArrays(path string) (_ map[string]*ir.Array, err error) {
	s, err := openNPZ(path, nil)
	if s != nil {
		defer func() { err = errors.Join(err, s.close()) }()
	}
	if err != nil {
		return nil, err
	}
	all := map[string]*ir.Array{}
	for _, name := range s.names {
		c, err := s.open(name)
		if err != nil {
			return nil, fmt.Errorf("%s: array %q: %w", path, name, err)
		}
		a, ok := c.(*array)
		if !ok {
			return nil, fmt.Errorf("%s: %q is not an array", path, name)
		}
		index := make([]int, a.n)
		for i := range index {
			index[i] = i
		}
		load, err := a.load(index, nil)
		if err == nil {
			all[name], err = load()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: array %q: %w", path, name, err)
		}
		if a.scalar {
			all[name].Shape = []int64{}
		}
	}
	return all, nil
}

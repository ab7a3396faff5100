package metric

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/ir"
)

// WriteArrays writes the arrays of each run, joined along the first axis, as an .npz file, which appears whole.
func WriteArrays(path string, runs iter.Seq[map[string]*ir.Array]) (err error) {
	folder, err := atomicfile.NewFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	// The bound on files is for those of evaluators, which are temporary.
	left := int64(math.MaxInt64)
	a := &archive{path: filepath.Join(folder.Path, "arrays"), free: &left}
	defer func() { err = errors.Join(err, a.close()) }()
	for arrays := range runs {
		n, err := samplesOf(arrays)
		if err == nil {
			err = a.add(arrays, n)
		}
		if err != nil {
			return err
		}
	}
	return atomicfile.Write(path, atomicfile.Access{}, a.write)
}

// samplesOf is the size of the first axis of all arrays of a run.
func samplesOf(arrays map[string]*ir.Array) (int, error) {
	n := int64(-1)
	for name, a := range arrays {
		switch {
		case a == nil || a.Kind != ir.Dense || len(a.Shape) == 0:
			return 0, fmt.Errorf("array %q has no axis of samples", name)
		case n >= 0 && a.Shape[0] != n:
			return 0, fmt.Errorf("array %q has %d samples, another one has %d", name, a.Shape[0], n)
		}
		n = a.Shape[0]
	}
	return int(n), nil
}

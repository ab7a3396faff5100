package mcompress

import (
	"iter"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/ir"
)

// ReadArrays reads the arrays of an .npz file, such as those of EvaluatorFiles, into memory, by their names.
func ReadArrays(path string) (map[string]*ir.Array, error) { return dataset.ReadArrays(path) }

// WriteArrays writes samples that a program makes as an .npz file, for Data.Path: each element of samples has arrays by
// the names of the model's inputs, and labels under "labels", whose first axis is samples. Arrays of one name are
// joined along it. The file appears whole. Memory does not grow with the number of samples.
func WriteArrays(path string, samples iter.Seq[map[string]*ir.Array]) error {
	return metric.WriteArrays(path, samples)
}

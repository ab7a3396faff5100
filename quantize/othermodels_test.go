package quantize

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Models of the test suites of other projects have unusual graphs. No method fails on them, and outputs are as valid as
// inputs, as checked by try.
func TestModelsOfOtherTestSuites(t *testing.T) {
	many(t)
	w := conform.Start(t)
	variants := []variant{{DynamicInt8{}.Method(), []string{"embeddings"}}, {WeightInt8{}.Method(), nil}, int4, int2,
		{Float16{}.Method(), nil}}
	taken := 0
	for i, path := range conform.ModelsBelow(t, filepath.Join(conform.Shared(t), "fixtures", "conformance", "small")) {
		f, err := onnx.Open(path)
		if err != nil {
			var bad *onnx.FormatError
			if !errors.As(err, &bad) {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		sound := f.Model.Verify() == nil && sorts(f.Model)
		f.Close()
		if !sound {
			continue // Open's own tests are about those
		}
		for _, v := range conform.Sampled(i, variants) {
			t.Run(v.String()+" "+filepath.Base(path), func(t *testing.T) {
				if try(t, w, v, path) != nil {
					taken++
				}
			})
		}
	}
	if want := 45; taken < want || conform.Exhaustive() && taken < 2*want {
		t.Errorf("only %d outputs differ from their inputs", taken)
	}
}

func sorts(m *ir.Model) bool {
	for g := range m.Graphs() {
		if g.Sort() != nil {
			return false
		}
	}
	return true
}

package conform

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rejected are the generated models that full onnx.checker refuses, by what they are
// there for. Every other one must pass, so that a slip in the maker shows.
var rejected = []string{
	"attribute_presence", "attribute_unknown_type", "constant_text", "empty", "empty_graph", "everywhere",
	"external_everywhere",
	"metadata_twice", "no_graph", "produced_twice", "sparse_initializers", "tensor_negative_dim", "unsorted",
	"value_types",
}

func TestGeneratedSetParsesAndIsValidWhereItClaimsToBe(t *testing.T) {
	w := Start(t)
	paths, err := w.GenerateSet(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		base, _, _ := strings.Cut(filepath.Base(path), ".")
		if err := w.Parses(path); err != nil {
			t.Errorf("%s: %v", base, err)
		}
		err := w.Check(path, true)
		if want := slices.Contains(rejected, base); want != (err != nil) {
			t.Errorf("%s: rejected should be %v, the checker reports: %v", filepath.Base(path), want, err)
		}
	}
}

func TestGeneratedEncodingsMeanTheSameModel(t *testing.T) {
	w := Start(t)
	paths, err := w.GenerateSet(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	styles := map[string]int{}
	for _, path := range paths {
		parts := strings.Split(filepath.Base(path), ".")
		if len(parts) != 3 {
			continue
		}
		styles[parts[1]]++
		err := w.Equal(filepath.Join(filepath.Dir(path), parts[0]+".onnx"), path)
		if unknown := parts[1] == "unknown"; unknown != (err != nil) || unknown &&
			!strings.Contains(err.Error(), "unknown fields differ") {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
	if len(styles) != 7 {
		t.Errorf("styles %v, want 7", styles)
	}
}

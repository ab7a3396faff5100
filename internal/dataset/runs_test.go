package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// The test data of every shared model opens as one run with all inputs and outputs.
func TestRunsOfSharedModels(t *testing.T) {
	tried := 0
	for _, path := range conform.RealModels(t) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "test_data_set_0")); err != nil {
			continue
		}
		tried++
		f, err := onnx.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		in, out := Inputs(f.Model.Graph), Outputs(f.Model.Graph)
		s := mustOpen(t, filepath.Dir(path), in, out, Options{})
		if s.Len() != 1 || s.Labelled() {
			t.Errorf("%s: %d runs", path, s.Len())
		}
		b := all(t, s, Order{Size: 8})[0]
		if len(b.Inputs) != len(in) || len(b.Outputs) != len(out) || b.N != 1 || !slices.Equal(s.Recorded(), names(out)) {
			t.Errorf("%s: %d inputs of %d, outputs %q", path, len(b.Inputs), len(in), s.Recorded())
		}
		for _, i := range in {
			if a := b.Inputs[i.Name]; a.DType != i.elem() {
				t.Errorf("%s: %q is %s, want %s", path, i.Name, a, typeText(i.Type))
			}
		}
		f.Close()
	}
	if tried < 30 {
		t.Errorf("only %d models", tried)
	}
}

// floats is a TensorProto of one axis: dims, data_type FLOAT, raw_data.
func floats(v ...float32) []byte {
	b := []byte{1 << 3, byte(len(v)), 2 << 3, byte(ir.Float), 9<<3 | 2, byte(4 * len(v))}
	return append(b, ir.ArrayOf(v, int64(len(v))).Data...)
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Folders of runs are in the order of their numbers, with any shapes.
func TestSeveralRuns(t *testing.T) {
	dir := t.TempDir()
	for folder, v := range map[string][]float32{"test_data_set_2": {2}, "test_data_set_10": {10, 10},
		"test_data_set_1": {1, 1, 1}} {
		write(t, filepath.Join(dir, folder, "input_0.pb"), floats(v...))
		write(t, filepath.Join(dir, folder, "output_1.pb"), floats(v[0]))
	}
	write(t, filepath.Join(dir, "notes", "README"), nil)
	out := inputs(input("y", "float[n]"), input("z", "double[n]"))
	s := mustOpen(t, dir, inputs(input("x", "float[n]"), input("w", "int64[2,n]")), out,
		Options{Fill: map[string]float64{"w": 7}})
	if !slices.Equal(s.Recorded(), []string{"z"}) {
		t.Errorf("recorded %q", s.Recorded())
	}
	var got []float64
	for i, b := range all(t, s, Order{Size: 3}) {
		z := b.Outputs["z"]
		got = append(got, ir.View[float64](z)...)
		n := b.Inputs["x"].Shape[0]
		sameShape(t, b.Inputs["w"], 2, n)
		if w := ir.View[int64](b.Inputs["w"]); slices.Min(w) != 7 || slices.Max(w) != 7 || b.First != i {
			t.Errorf("w is %v", w)
		}
	}
	if !slices.Equal(got, []float64{1, 2, 10}) {
		t.Errorf("order %v", got)
	}
}

func TestBadRuns(t *testing.T) {
	two := inputs(input("x", "float[n]"), input("w", "float[3]"))
	for _, tt := range []struct {
		name  string
		files map[string][]byte
		want  []string
	}{
		{"an input is missing", map[string][]byte{"input_0.pb": floats(1)}, []string{"input_1.pb", `"w"`, "--fill w=VALUE"}},
		{"more inputs than the model has", map[string][]byte{"input_0.pb": floats(1), "input_1.pb": floats(1, 2, 3),
			"input_2.pb": floats(1)}, []string{"input_2.pb", "only 2"}},
		{"another shape", map[string][]byte{"input_0.pb": floats(1), "input_1.pb": floats(1)},
			[]string{"input_1.pb", "float[1]", "float[3]"}},
		{"a folder without a number", map[string][]byte{"test_data_set_x/input_0.pb": floats(1)},
			[]string{"test_data_set_0"}},
		{"no message", map[string][]byte{"input_0.pb": []byte("\xff"), "input_1.pb": floats(1)},
			[]string{"input_0.pb: offset 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range tt.files {
				write(t, filepath.Join(dir, name), b)
			}
			s, err := Open(dir, two, nil, Options{})
			if err == nil {
				for _, err = range s.Batches(t.Context(), Order{}) {
				}
			}
			requireError(t, err, tt.want...)
		})
	}
}

// A recorded output may have another shape than the model declares, as real models do.
func TestRunWithAnotherShapeOfOutput(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "input_0.pb"), floats(1))
	write(t, filepath.Join(dir, "output_0.pb"), floats(1, 2))
	b := all(t, mustOpen(t, dir, inputs(input("x", "float[n]")), inputs(input("y", "float[3,n]")), Options{}), Order{})[0]
	if y := b.Outputs["y"]; y == nil || !slices.Equal(y.Shape, []int64{2}) {
		t.Errorf("y is %v", y)
	}
}

// ONNX's own tests open unmodified; sequences and optionals keep their kinds.
func TestRunsOfONNXsTests(t *testing.T) {
	tried := 0
	for name, folder := range nodeTests(t) {
		f, err := onnx.Open(filepath.Join(folder, "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		in, out := Inputs(f.Model.Graph), Outputs(f.Model.Graph)
		f.Close()
		if len(in) == 0 {
			continue
		}
		tried++
		s, err := Open(folder, in, out, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for b, err := range s.Batches(t.Context(), Order{}) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if len(b.Inputs) != len(in) || len(b.Outputs) != len(out) {
				t.Errorf("%s: %d inputs of %d, %d outputs of %d", name, len(b.Inputs), len(in), len(b.Outputs), len(out))
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d tests", tried)
	}
}

// nodeTests extracts ONNX's node tests and returns their folders by name.
func nodeTests(t *testing.T) map[string]string {
	t.Helper()
	root, folders := t.TempDir(), map[string]string{}
	z, err := openZip(sharedFile(t, "conformance", "onnx_node_tests.zip"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range z {
		write(t, filepath.Join(root, name), b)
		if filepath.Base(name) == "model.onnx" {
			folders[filepath.Dir(name)] = filepath.Join(root, filepath.Dir(name))
		}
	}
	return folders
}

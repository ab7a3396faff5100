package distill

import (
	"archive/zip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// The agreement of the evaluator is the accuracy of the quantized model in ONNX Runtime.
func TestQATAccuracy(t *testing.T) {
	w, data := conform.Start(t), samples(t, 300)
	static := fmt.Sprintf("static-int8 no-bias-correction calibrate=32 labels=label data=%s", data)
	for _, text := range []string{
		"weight-int2 block=16", "weight-int4 symmetric", "weight-int4 per-channel algo=hqq",
		"weight-int8 block=32 asymmetric", "palette entries=4", "dynamic-int8", static,
	} {
		t.Run(strings.Fields(text)[0], func(t *testing.T) {
			step := quantizer(t, text)
			o := []string{"data", data, "labels", "label", "batch", "16", "epochs", "2", "validate", "0.48", "qat",
				step.Method().Name}
			m, e := network(1, features, 64, 32, classes), ir.NewEval(t.TempDir())
			defer e.Close()
			res, err := pass.Run(t.Context(), m, e, pass.Environment{Workers: 2}, []pass.Options{finetune(t, o...), step})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "quantized.onnx")
			if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{Workers: 1, Eval: e}); err != nil {
				t.Fatal(err)
			}
			got, err := w.Accuracy(path, validationSet(t, o...), "labels", conform.Options{})
			if err != nil {
				t.Fatal(err)
			}
			training := res.Trainings[0]
			i := slices.IndexFunc(training.ValidationAccuracy, func(p pass.Point) bool { return p.Step == training.Kept })
			if i < 0 {
				t.Fatalf("no evaluation of the kept step %d", training.Kept)
			}
			// Nearly equal scores may differ in order in other arithmetic: at most one sample.
			if want := training.ValidationAccuracy[i].Y; math.Abs(got-want) > 1.01/144 {
				t.Errorf("evaluator: %.4f, ONNX Runtime %.4f", want, got)
			}
		})
	}
}

// validationSet writes the validation set of training with these options.
func validationSet(t *testing.T, o ...string) string {
	t.Helper()
	s, m := parse(t, o...), network(1, features, classes)
	source := dataset.Source{Samples: s.Samples}
	set, err := source.Open(m, withDynamicBatch(dataset.Inputs(m.Graph)), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	_, index := splitSamples(set.Len(), *s.Validate, *s.Seed)
	path := filepath.Join(t.TempDir(), "validation.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for b, err := range set.Batches(t.Context(), dataset.Order{Size: len(index), Index: index}) {
		if err != nil {
			t.Fatal(err)
		}
		npy(t, z, "x", "<f4", b.Inputs["x"])
		npy(t, z, "labels", "<i8", ir.ArrayOf(b.Classes(), int64(b.N)))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// npy adds an array in NumPy's format.
func npy(t *testing.T, z *zip.Writer, name, descr string, a *ir.Array) {
	t.Helper()
	w, err := z.Create(name + ".npy")
	if err != nil {
		t.Fatal(err)
	}
	shape := ""
	for _, n := range a.Shape {
		shape += fmt.Sprintf("%d,", n)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, shape)
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	if _, err := w.Write(append(append(b, header...), a.Data...)); err != nil {
		t.Fatal(err)
	}
}

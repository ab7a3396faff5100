package evidence

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
)

// A folder of samples is an input of a recipe: it is compared by the digest of the list of its files, without hidden
// folders.
func TestFolderOfSamples(t *testing.T) {
	dir := t.TempDir()
	model, err := os.ReadFile("../../fixtures/mlp.onnx")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("mlp.onnx", model)
	samples := filepath.Join(dir, "samples")
	if err := os.MkdirAll(filepath.Join(samples, ".cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	arrays, err := zip.OpenReader("../../fixtures/digits_test.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer arrays.Close()
	for _, f := range arrays.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		write("samples/"+f.Name, data)
	}
	step, err := pass.NewStep(quantize.StaticInt8{}.Method(), pass.Assignments([]string{"data=" + samples}))
	if err != nil {
		t.Fatal(err)
	}
	compare := comparison(t, dir, "mlp.onnx", step)
	write("samples/.cache/thumbnails", nil)
	if res := compare(); !res.Matches() || !slices.Contains(res.Checked, "samples") {
		t.Errorf("%+v", res)
	}
	write("samples/more.npy", nil)
	if res := compare(); len(res.Mismatches) != 1 || !strings.HasPrefix(res.Mismatches[0], "samples: the SHA-256 is ") {
		t.Errorf("%+v", res)
	}
}

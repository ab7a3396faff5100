package evidence

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/pass"
)

// A teacher with external data is an input of a recipe: it is compared by the digest of the list of its files, where
// all of them are there, and so are the other inputs, a file or a folder.
func TestTeacherWithExternalData(t *testing.T) {
	for _, data := range []string{"x.npy", "samples"} {
		t.Run(data, func(t *testing.T) { testTeacher(t, data) })
	}
}

func testTeacher(t *testing.T, name string) {
	dir := t.TempDir()
	for name, from := range map[string]string{"student.onnx": "external.onnx", "teacher.onnx": "external.onnx",
		"external_a.bin": "external_a.bin", "external_b.bin": "external_b.bin"} {
		data, err := os.ReadFile(filepath.Join("../../fixtures", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 48), }"
	samples := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	samples = append(append(samples, header...), bytes.Repeat([]byte{0, 0, 0x80, 0x3f}, 64*48)...)
	path := filepath.Join(dir, name)
	if filepath.Ext(path) == "" {
		path = filepath.Join(path, "x.npy")
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, samples, 0o666)); err != nil {
		t.Fatal(err)
	}
	step, err := pass.NewStep(distill.Distill{}.Method(), pass.Assignments([]string{
		"teacher=" + filepath.Join(dir, "teacher.onnx"), "data=" + filepath.Join(dir, name), "steps=1", "lr=0.01",
		"validate=0",
	}))
	if err != nil {
		t.Fatal(err)
	}
	compare := comparison(t, dir, "student.onnx", step)
	if res := compare(); !res.Matches() || !slices.Contains(res.Checked, "teacher.onnx") ||
		!slices.Contains(res.Checked, name) {
		t.Errorf("%+v", res)
	}
	data := filepath.Join(dir, "external_b.bin")
	if err := os.WriteFile(data, make([]byte, 8320), 0o666); err != nil {
		t.Fatal(err)
	}
	if res := compare(); !slices.ContainsFunc(res.Mismatches, func(m string) bool {
		return strings.HasPrefix(m, "teacher.onnx: the SHA-256 is ")
	}) {
		t.Errorf("%+v", res)
	}
	if err := os.Remove(data); err != nil {
		t.Fatal(err)
	}
	if res := compare(); !slices.Contains(res.Unchecked, "external_b.bin: not here") ||
		slices.Contains(res.Checked, "teacher.onnx") {
		t.Errorf("%+v", res)
	}
}

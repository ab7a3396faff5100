package sparse

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// FuzzDense undoes forms of models that are not what they seem: errors are fine, panics
// and wrong lengths are not.
func FuzzDense(f *testing.F) {
	for _, m := range formMethods() {
		for _, version := range []int64{16, 21} {
			model := modelOf(version, random("w", ir.Float, []int64{32, 48}, blocks(48, .05)))
			_, e := apply(f, model, 1, stepOf(f, m, nil))
			b, err := os.ReadFile(save(f, model, e, "seed.onnx"))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := onnx.Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		res, err := pass.Run(t.Context(), file.Model, e, pass.Environment{Workers: 1},
			[]pass.Options{stepOf(t, denseMethod, nil)})
		if err != nil {
			if strings.Contains(err.Error(), "internal error") {
				t.Fatal(err)
			}
			return
		}
		for _, r := range res.Rows {
			if r.Status == pass.Changed && r.Before.Bytes() < 1<<20 {
				// Whether the parts make sense shows only now.
				if b, err := e.ReadAll(context.Background(), r.After[0].Tensor); err == nil && int64(len(b)) != r.Before.Bytes() {
					t.Errorf("%s: %d bytes, want %d", r.Tensor, len(b), r.Before.Bytes())
				}
			}
		}
	})
}

package engine_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/engine"
)

// Sessions that share an arena have the outputs of sessions with memory of their own, also after a larger run has
// replaced the arena.
func TestSharedArena(t *testing.T) {
	arena := &engine.Arena{}
	for _, name := range []string{"mlp.onnx", "transformer.onnx", "cnn.onnx", "subgraph_if.onnx"} {
		path := filepath.Join("..", "..", "fixtures", name)
		want, ok := outputs(t, path, engine.Options{})
		if !ok {
			t.Fatal(name)
		}
		f, shared := open(t, path, engine.Options{Workers: 2, Arena: arena})
		batch, err := sample(f.Model.Graph, path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{0, 1 << 10, 1 << 22} {
			arena.Reserve(n)
			got, err := shared.Run(context.Background(), batch.Inputs, nil)
			if err != nil {
				t.Fatal(err)
			}
			for k, w := range want {
				if err := (tolerance{}).differ(w, got[k]); err != nil {
					t.Errorf("%s after %d bytes: output %q: %v", name, n, k, err)
				}
			}
		}
		shared.Free()
		if m := shared.Memory(); m.Idle != 0 || m.Running != 0 {
			t.Errorf("%s: %+v after Free", name, m)
		}
	}
}

package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// tokenFile is an .npy file of rows of token ids below a limit.
func tokenFile(t *testing.T, rows, columns, limit int) string {
	t.Helper()
	header := fmt.Sprintf("{'descr': '<i8', 'fortran_order': False, 'shape': (%d, %d), }", rows, columns)
	b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(b[8:], uint16(len(header)))
	b = append(b, header...)
	for i := range rows * columns {
		b = binary.LittleEndian.AppendUint64(b, uint64(i*i*7919%limit))
	}
	path := filepath.Join(t.TempDir(), "tokens.npy")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func realModel(t *testing.T, name string) *ir.Model {
	t.Helper()
	f, err := onnx.Open(filepath.Join(conform.Shared(t), "fixtures", "models", name, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Model
}

// Logits of token ids alone are the same in one run with empty caches and in several, each with the caches of the
// one before.
func TestDecodingIsThatOfOneRun(t *testing.T) {
	path := tokenFile(t, 2, 12, 1000)
	for _, name := range []string{"transformer/gpt2_tiny_fp32", "transformer/qwen35_tiny"} {
		m := realModel(t, name)
		s, err := engine.Open(context.Background(), m, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		whole := logits(t, m, s, path, 12)
		for _, step := range []int64{0, 1, 5} {
			got := logits(t, m, s, path, step)
			if len(got) != len(whole) {
				t.Fatalf("%s: %d logits in steps of %d, want %d", name, len(got), step, len(whole))
			}
			for i := range got {
				if math.Abs(got[i]-whole[i]) > 1e-3*(1+math.Abs(whole[i])) {
					t.Fatalf("%s: logit %d is %g in steps of %d, want %g", name, i, got[i], step, whole[i])
				}
			}
		}
	}
}

// logits are those of all tokens of the first sample.
func logits(t *testing.T, m *ir.Model, s engine.Session, path string, step int64) []float64 {
	t.Helper()
	set, err := dataset.Open(path, dataset.Inputs(m.Graph), dataset.Outputs(m.Graph), dataset.Options{Step: step})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	state := dataset.NewState(set.Carry())
	var out []float64
	for b, err := range set.Sequences(context.Background(), dataset.Order{Size: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Run(context.Background(), state.Inputs(b), state.Fetch([]string{"logits"}))
		if err != nil {
			t.Fatal(err)
		}
		state.Keep(got)
		x := all(got["logits"])
		out = append(out, x[:len(x)/2]...)
	}
	return out
}

// A state that is carried by --carry changes the outputs, and comparing a model with itself is exact.
func TestCarriedState(t *testing.T) {
	m := realModel(t, "audio/silero_vad")
	s, err := engine.Open(context.Background(), m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	carry := []dataset.Pair{{Output: "stateN", Input: "state"}}
	set, err := dataset.Generate(dataset.Inputs(m.Graph),
		dataset.Random{Samples: 3, Carry: carry, Ranges: map[string][2]int64{"sr": {8000, 8000}}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	r, err := Compare(context.Background(), s, s, set, Options{})
	if err != nil || r.Data.Samples != 3 || !r.Outputs[0].Errors.Exact {
		t.Fatalf("got %+v, %v, want an exact result of 3 samples", r, err)
	}
	state := dataset.NewState(set.Carry())
	runs := 0
	for b, err := range set.Sequences(context.Background(), dataset.Order{}) {
		if err != nil {
			t.Fatal(err)
		}
		if given := b.Inputs["state"]; (given != nil) != (runs == 0) || given != nil && all(given)[0] != 0 {
			t.Errorf("run %d starts with %v", runs, given)
		}
		before := state.Inputs(b)["state"]
		got, err := s.Run(context.Background(), state.Inputs(b), state.Fetch(nil))
		if err != nil {
			t.Fatal(err)
		}
		state.Keep(got)
		if after := state.Inputs(&dataset.Batch{Inputs: map[string]*ir.Array{}})["state"]; after == before {
			t.Error("the state is not that of the run")
		}
		runs++
	}
	if runs != 3 {
		t.Errorf("%d runs, want 3", runs)
	}
	if _, err := dataset.Generate(dataset.Inputs(m.Graph),
		dataset.Random{Carry: []dataset.Pair{{Output: "none", Input: "state"}}}); err == nil {
		t.Error("no error for an output that does not exist")
	}
}

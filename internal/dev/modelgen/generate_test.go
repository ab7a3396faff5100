package modelgen

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// Generated models are valid, run in ONNX Runtime at the opsets that it implements, and depend on their seed only.
func TestModelsAreValid(t *testing.T) {
	w := conform.Start(t)
	n := uint64(40)
	if conform.Exhaustive() {
		n = 2000
	}
	refused := 0
	for seed := range n {
		m := New(seed)
		dir := t.TempDir()
		path := filepath.Join(dir, "m.onnx")
		if err := m.Write(path); err != nil {
			t.Fatal(err)
		}
		if err := w.Check(path, !m.Sparse()); err != nil {
			t.Errorf("seed %d, %v: %v", seed, m.Traits, err)
			continue
		}
		if _, err := w.Run(path, conform.Options{Level: "none"}); err != nil {
			refused++
			t.Logf("seed %d, opset %d, IR %d, %v: %v", seed, m.Opset, m.IR, m.Traits, err)
		}
		again := filepath.Join(t.TempDir(), "m.onnx")
		if err := New(seed).Write(again); err != nil {
			t.Fatal(err)
		}
		a, _ := os.ReadFile(path)
		if b, err := os.ReadFile(again); err != nil || !bytes.Equal(a, b) {
			t.Errorf("seed %d: two models", seed)
		}
	}
	if refused > int(n)/20 {
		t.Errorf("ONNX Runtime refuses %d of %d models", refused, n)
	}
}

// The generator reaches all of its architectures, layers and forms of weights.
func TestModelsVary(t *testing.T) {
	seen := map[string]bool{}
	ops := map[string]bool{}
	for seed := range uint64(500) {
		m := New(seed)
		for _, trait := range m.Traits {
			seen[trait] = true
		}
		m.graphs(func(g *Graph) {
			for _, n := range g.Nodes {
				ops[n.Op] = true
			}
		})
	}
	for _, a := range architectures {
		if !seen["architecture: "+a.name] {
			t.Errorf("no %s", a.name)
		}
	}
	for _, f := range fillers[1:] {
		if f.weight < 12 && !seen["values: "+f.name] {
			t.Errorf("no values: %s", f.name)
		}
	}
	for _, op := range strings.Fields("Conv ConvTranspose Gather Gemm GRU LSTM MatMul RNN If Loop Scan Einsum NonMaxSuppression Range " +
		"MatMulInteger QLinearMatMul QLinearConv QAttention EmbedLayerNormalization QEmbedLayerNormalization DynamicQuantizeLSTM MatMulNBits FusedConv QMoE MoE") {
		if !ops[op] {
			t.Errorf("no %s", op)
		}
	}
}

// Related models are valid, and give the same outputs.
func TestRelationsKeepOutputs(t *testing.T) {
	w := conform.Start(t)
	seen := map[string]int{}
	for seed := range uint64(30) {
		m := New(seed)
		r := rand.New(rand.NewPCG(1, seed))
		name, other := Relate(r, m)
		if other == nil {
			continue
		}
		seen[name]++
		dir, there := t.TempDir(), t.TempDir()
		path, changed := filepath.Join(dir, "m.onnx"), filepath.Join(there, "m.onnx")
		if err := errors.Join(m.Write(path), other.Write(changed)); err != nil {
			t.Fatal(err)
		}
		if err := w.Check(changed, !other.Sparse()); err != nil {
			t.Errorf("seed %d, %s: %v", seed, name, err)
		}
		if name == "one more output" {
			continue
		}
		if outputs, err := w.Compare(path, changed, conform.Options{Level: "none"}); err != nil ||
			conform.LowestSQNR(outputs) < 100 {
			t.Errorf("seed %d, %s: %v, %v", seed, name, outputs, err)
		}
	}
	if len(seen) < len(relations)-1 {
		t.Errorf("relations %v", seen)
	}
}

// Every reduction is smaller or as large, and some of them are valid.
func TestReductions(t *testing.T) {
	w := conform.Start(t)
	valid, all := 0, 0
	for seed := range uint64(4) {
		m := New(seed)
		for c := range Reductions(m) {
			if all++; all%9 > 0 {
				continue
			}
			path := filepath.Join(t.TempDir(), "m.onnx")
			if err := c.Write(path); err != nil {
				t.Fatal(err)
			}
			if w.Check(path, !c.Sparse()) == nil {
				valid += 9
			}
		}
	}
	if valid < all/2 {
		t.Errorf("%d of %d reductions are valid", valid, all)
	}
}

package conform

import (
	"encoding/binary"
	"math"
	"os"
	"slices"
	"testing"
)

func TestORTDynamicFusesAndShrinks(t *testing.T) {
	w, at := Start(t), material(t)
	out := at("mlp_int8.onnx")
	if err := w.ORTDynamic(at("mlp.onnx"), out, DynamicOptions{PerChannel: true, Ops: []string{"MatMul"}}); err != nil {
		t.Fatal(err)
	}
	ops, err := w.OptimizedOps(out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ops["com.microsoft.DynamicQuantizeMatMul"] != 1 || ops["Relu"] != 1 {
		t.Errorf("optimised to %v", ops)
	}
	before, err := w.OptimizedBytes(at("mlp.onnx"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := w.OptimizedBytes(out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if before-after < 5000 {
		t.Errorf("%d bytes at run time, %d before: 8192 bytes of float32 became 2048 of int8", after, before)
	}
	outputs, err := w.Compare(at("mlp.onnx"), out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if sqnr := LowestSQNR(outputs); sqnr < 25 || sqnr > 80 {
		t.Errorf("%v dB of int8 against float32", sqnr)
	}
}

func TestORTDynamicReportsItsFailure(t *testing.T) {
	w, at := Start(t), material(t)
	if err := w.ORTDynamic(at("labelled.npz"), at("out.onnx"), DynamicOptions{}); err == nil {
		t.Error("an .npz was quantized")
	}
	if _, err := os.Stat(at("out.onnx")); err == nil {
		t.Error("there is an output")
	}
}

func TestOptimizedOpsOfTheGraphAsItIs(t *testing.T) {
	w, at := Start(t), material(t)
	ops, err := w.OptimizedOps(at("mlp.onnx"), Options{Level: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if ops["MatMul"] != 1 || ops["Relu"] != 1 || len(ops) != 2 {
		t.Errorf("got %v", ops)
	}
}

func TestSparseReadsWhatSciPyWrote(t *testing.T) {
	w, at := Start(t), material(t)
	m, err := w.Sparse(at("matrix.npz"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Format != "csr" || m.Stored != 2 || !slices.Equal(m.Dense.Shape, []int{2, 3}) || m.Dense.DType != "float64" {
		t.Errorf("got %+v", m)
	}
	for i, want := range []float64{0, 2.5, 0, 0, 0, -1} {
		if got := math.Float64frombits(binary.LittleEndian.Uint64(m.Dense.Data[8*i:])); got != want {
			t.Errorf("element %d: %v, want %v", i, got, want)
		}
	}
}

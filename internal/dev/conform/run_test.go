package conform

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

func one(t *testing.T, arrays []Array, err error) Array {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(arrays) != 1 {
		t.Fatalf("%d outputs, want 1", len(arrays))
	}
	return arrays[0]
}

func floats(a Array) []float32 {
	values := make([]float32, len(a.Data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
	}
	return values
}

func TestRunPrefersFilesThenRecordedThenRandomInputs(t *testing.T) {
	w, at := Start(t), material(t)
	for name, c := range map[string]struct {
		o    Options
		want []float32
	}{
		"recorded": {Options{}, []float32{1, 2, 3, 4}},
		"npz":      {Options{Inputs: []string{at("other.npz")}}, []float32{5, 6, 7, 8}},
		"pb":       {Options{Inputs: []string{at("recorded/test_data_set_0/input_0.pb")}}, []float32{1, 2, 3, 4}},
	} {
		arrays, err := w.Run(at("recorded/model.onnx"), c.o)
		if got := one(t, arrays, err); got.DType != "float32" || !slices.Equal(floats(got), c.want) {
			t.Errorf("%s: %s %v, want %v", name, got.DType, floats(got), c.want)
		}
	}
	arrays, err := w.Run(at("recorded/model.onnx"), Options{Random: true})
	if got := floats(one(t, arrays, err)); slices.Equal(got, []float32{1, 2, 3, 4}) {
		t.Error("random inputs are the recorded ones")
	}
}

func TestRandomInputsFollowSeedAndDeclaredShapes(t *testing.T) {
	w, at := Start(t), material(t)
	run := func(o Options) Array {
		arrays, err := w.Run(at("argmax.onnx"), o)
		return one(t, arrays, err)
	}
	first := run(Options{Seed: 1})
	if !slices.Equal(first.Shape, []int{1, 4}) {
		t.Errorf("shape %v, want an open first axis to be 1", first.Shape)
	}
	if !bytes.Equal(first.Data, run(Options{Seed: 1}).Data) || bytes.Equal(first.Data, run(Options{Seed: 2}).Data) {
		t.Error("inputs do not follow the seed")
	}
	if got := run(Options{Batch: 3}).Shape; !slices.Equal(got, []int{3, 4}) {
		t.Errorf("shape %v with batch 3", got)
	}
	if got := run(Options{Dims: map[string]int{"n": 5}}).Shape; !slices.Equal(got, []int{5, 4}) {
		t.Errorf("shape %v with n=5", got)
	}
}

func TestRandomInputsAreTriedUntilTheModelRuns(t *testing.T) {
	w, at := Start(t), material(t)
	arrays, err := w.Run(at("lookup.onnx"), Options{})
	one(t, arrays, err)
	arrays, err = w.Run(at("halving.onnx"), Options{})
	if got := one(t, arrays, err).Shape; !slices.Equal(got, []int{1, 1, 16}) {
		t.Errorf("shape %v, want the first size that runs, 16", got)
	}
	if _, err := w.Run(at("halving.onnx"), Options{Size: 5}); err == nil {
		t.Error("the requested size was not used")
	}
}

func TestRunReturnsTextMasksAndSequences(t *testing.T) {
	w, at := Start(t), material(t)
	arrays, err := w.Run(at("mixed.onnx"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range arrays {
		names = append(names, a.Name)
	}
	if want := []string{"same", "mask", "pair[0]", "pair[1]"}; !slices.Equal(names, want) {
		t.Fatalf("outputs %v, want %v", names, want)
	}
	if text := arrays[0]; text.DType != "string" || len(bytes.Split(text.Data, []byte{0})) != 2 {
		t.Errorf("text: %s %q", text.DType, text.Data)
	}
	if mask := arrays[1].Data; mask[0] != 1 || mask[8] != 1 {
		t.Errorf("mask %v, want ones", mask)
	}
}

func TestCompareMeasuresADistanceThatIsKnown(t *testing.T) {
	w, at := Start(t), material(t)
	same, err := w.Compare(at("mlp.onnx"), at("mlp_external.onnx"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o := same[0]; !o.Equal || !math.IsInf(float64(o.SQNR), 1) || o.MaxErr != 0 ||
		math.Abs(float64(o.Cosine)-1) > 1e-12 {
		t.Errorf("a model against itself: %+v", o)
	}
	noisy, err := w.Compare(at("mlp.onnx"), at("mlp_noisy.onnx"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Weights 1 % larger make outputs 1 % larger: 20·log10(100) = 40 dB, the same direction.
	if o := noisy[0]; o.Equal || math.Abs(float64(o.SQNR)-40) > 0.01 || o.MaxErr <= 0 || o.Cosine < 0.999999 {
		t.Errorf("outputs 1 %% larger: %+v, want 40 dB", o)
	}
	if got, want := LowestSQNR(append(same, noisy...)), float64(noisy[0].SQNR); got != want {
		t.Errorf("lowest %v, want %v", got, want)
	}
}

func TestCompareRejectsOtherOutputs(t *testing.T) {
	w, at := Start(t), material(t)
	if _, err := w.Compare(at("mlp.onnx"), at("lookup.onnx"), Options{}); err == nil {
		t.Error("models with other inputs compare")
	}
}

func TestAccuracyIsTheFractionOfCorrectLabels(t *testing.T) {
	w, at := Start(t), material(t)
	for _, batch := range []int{0, 1, 3} {
		got, err := w.Accuracy(at("argmax.onnx"), at("labelled.npz"), "y", Options{Batch: batch})
		if err != nil {
			t.Fatal(err)
		}
		if got != 0.75 {
			t.Errorf("batch %d: accuracy %v, want 0.75: the last of four labels is wrong", batch, got)
		}
	}
	if _, err := w.Accuracy(at("argmax.onnx"), at("labelled.npz"), "none", Options{}); err == nil {
		t.Error("labels that are not there")
	}
}

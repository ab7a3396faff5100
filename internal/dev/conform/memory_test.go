package conform

import "testing"

// While Relu runs, the product and the output are there; nothing else is made.
func TestMemoryIsWhatValuesTake(t *testing.T) {
	w, at := Start(t), material(t)
	const rows = 1000
	m, err := w.Memory(at("mlp.onnx"), []Array{{Name: "x", DType: "float32", Shape: []int{rows, 32},
		Data: make([]byte, rows*32*4)}}, true)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(2 * rows * 64 * 4); m.First != want || m.Later < want {
		t.Errorf("got %+v, want %d bytes", m, want)
	}
	if m.Held < 32*64*4 {
		t.Errorf("%d bytes are held, the weight has %d", m.Held, 32*64*4)
	}
	if m.Resident != 0 && (m.Resident < m.First/2 || m.Resident > m.First+16<<20) {
		t.Errorf("a process grows by %d bytes for %d", m.Resident, m.First)
	}
}

func TestMemoryRefusesWhatDoesNotRun(t *testing.T) {
	w, at := Start(t), material(t)
	for _, in := range [][]Array{nil, {{Name: "x", DType: "float32", Shape: []int{1, 31}, Data: make([]byte, 31*4)}}} {
		if m, err := w.Memory(at("mlp.onnx"), in, false); err == nil {
			t.Errorf("got %+v of %d inputs that the model does not take", m, len(in))
		}
	}
}

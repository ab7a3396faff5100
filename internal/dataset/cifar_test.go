package dataset

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Channels are scaled each by its own mean, as cifar_wide_kw was trained.
func TestCIFAR(t *testing.T) {
	path := sharedFile(t, "datasets", "cifar10", "sdp200.bin")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mean := []float64{0.485, 0.456, 0.406}
	in, _ := model(t, "vision/cifar_wide_kw")
	s := mustOpen(t, path, in, nil, Options{Scale: 1.0 / 255, Mean: mean, Std: []float64{0.225}})
	for n, b := range all(t, s, Order{Size: 8}) {
		record := raw[n*cifarRecord:][:cifarRecord]
		x := b.Inputs[in[0].Name]
		sameShape(t, x, 1, 3, 32, 32)
		for i, got := range ir.View[float32](x) {
			if want := (float64(record[1+i])/255 - mean[i/1024]) / 0.225; math.Abs(float64(got)-want) > 1e-6 {
				t.Fatalf("sample %d: pixel %d is %v, want %v", n, i, got, want)
			}
		}
		if got := b.Classes(); !slices.Equal(got, []int64{int64(record[0])}) {
			t.Errorf("sample %d: label %v, want %d", n, got, record[0])
		}
	}
	if s.Len() != 200 {
		t.Errorf("%d samples", s.Len())
	}
}

// Several files are concatenated, also for a batch that spans both.
func TestCIFARInSeveralFiles(t *testing.T) {
	record := func(label byte) []byte { return slices.Repeat([]byte{label}, cifarRecord) }
	a := file(t, "1.bin", slices.Concat(record(0), record(1)))
	b := file(t, "2.bin", record(2))
	s := mustOpen(t, a+","+b, inputs(input("x", "uint8[n,3,32,32]")), nil, Options{})
	got := all(t, s, Order{Size: 3})
	if len(got) != 1 || !slices.Equal(got[0].Classes(), []int64{0, 1, 2}) {
		t.Fatalf("%d batches", len(got))
	}
	for i, v := range got[0].Inputs["x"].Data {
		if int(v) != i/cifarPixels {
			t.Fatalf("pixel %d of sample %d is %d", i%cifarPixels, i/cifarPixels, v)
		}
	}
}

func TestBadCIFAR(t *testing.T) {
	_, err := Open(file(t, "x.bin", make([]byte, 100)), inputs(input("x", "uint8[n,3,32,32]")), nil, Options{})
	requireError(t, err, "x.bin", "CIFAR-10", "3073")
}

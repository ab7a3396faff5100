package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// MNIST is read for each shared model trained on it. Their inputs have axes of size 1 at different positions, and fixed
// or open batches.
func TestMNIST(t *testing.T) {
	images := sharedFile(t, "datasets", "mnist", "t10k-even-images-idx3-ubyte.gz")
	labels := sharedFile(t, "datasets", "mnist", "t10k-even-labels-idx1-ubyte.gz")
	pixels, classes := unpacked(t, images)[16:], unpacked(t, labels)[8:]
	for _, tt := range []struct {
		model string
		shape []int64
	}{
		{"vision/mnist_cntk", []int64{1, 1, 28, 28}},
		{"vision/mnist_cnn_max3", []int64{50, 28, 28, 1}},
		{"vision/mnist_sigmoid", []int64{50, 28, 28}},
		{"vision/mnist_softmax_head", []int64{50, 1, 28, 28}},
		{"transformer/mnist_self_attention", []int64{1, 28, 28, 1}},
	} {
		in, out := model(t, tt.model)
		s := mustOpen(t, images+","+labels, in, out, Options{Scale: 1.0 / 255, Limit: 200})
		if s.Len() != 200 || !s.Labelled() || len(s.Recorded()) != 0 {
			t.Errorf("%s: %d samples", tt.model, s.Len())
		}
		seen := 0
		for _, b := range all(t, s, Order{Size: 50}) {
			x := b.Inputs[in[0].Name]
			sameShape(t, x, tt.shape...)
			if b.First != seen {
				t.Errorf("%s: %d came before, not %d", tt.model, seen, b.First)
			}
			for i, got := range ir.View[float32](x) {
				if want := float32(float64(pixels[784*s.position(seen+i/784)+i%784]) / 255); got-want > 1e-7 || want-got > 1e-7 {
					t.Fatalf("%s: sample %d: pixel %d is %v, want %v", tt.model, seen, i, got, want)
				}
			}
			for i, got := range b.Classes() {
				if got != int64(classes[s.position(seen+i)]) {
					t.Errorf("%s: sample %d: label %d", tt.model, seen+i, got)
				}
			}
			seen += b.N
		}
		if seen != 200 {
			t.Errorf("%s: %d samples came", tt.model, seen)
		}
	}
}

func idxFile(kind byte, dims []uint32, data any) []byte {
	b := []byte{0, 0, kind, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	b, err := binary.Append(b, binary.BigEndian, data)
	if err != nil {
		panic(err)
	}
	return b
}

func TestIDXTypes(t *testing.T) {
	for _, tt := range []struct {
		kind byte
		elem string
		data any
	}{
		{0x08, "uint8", []uint8{1, 2, 250, 4}},
		{0x09, "int8", []int8{1, 2, -6, 4}},
		{0x0b, "int16", []int16{1, 2, -300, 4}},
		{0x0c, "int32", []int32{1, 2, -70000, 4}},
		{0x0d, "float", []float32{1, 2, -0.5, 4}},
		{0x0e, "double", []float64{1, 2, -0.1, 4}},
	} {
		s := mustOpen(t, file(t, "x", idxFile(tt.kind, []uint32{2, 2}, tt.data)), inputs(input("x", tt.elem+"[n,2]")),
			nil, Options{})
		want, err := binary.Append(nil, binary.LittleEndian, tt.data)
		if err != nil {
			t.Fatal(err)
		}
		if a := all(t, s, Order{Size: 2})[0].Inputs["x"]; !slices.Equal(a.Data, want) || a.DType.String() != tt.elem {
			t.Errorf("%s: %v", tt.elem, a.Data)
		}
	}
}

func TestBadIDX(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    []byte
		want string
	}{
		{"no axes", idxFile(8, nil, []uint8{1, 2, 3, 4}), "not a valid IDX"},
		{"nine axes", idxFile(8, make([]uint32, 9), []uint8{1}), "not a valid IDX"},
		{"an unknown type", idxFile(0x0a, []uint32{1}, []uint8{1}), "not a valid IDX"},
		{"a header that ends", idxFile(8, make([]uint32, 3), []uint8{})[:12], "not a valid IDX"},
		{"more than the file", idxFile(8, []uint32{5}, []uint8{1, 2, 3, 4}), "truncated"},
		{"sizes whose product wraps", idxFile(8, []uint32{1 << 31, 1 << 31, 4}, []uint8{}), "too many"},
	} {
		c := &content{ReaderAt: bytes.NewReader(tt.b), name: "x.idx", size: int64(len(tt.b))}
		_, err := parseIDX(c)
		t.Run(tt.name, func(t *testing.T) { requireError(t, err, "x.idx", tt.want) })
	}
}

// No file causes a panic.
func FuzzIDX(f *testing.F) {
	f.Add(idxFile(8, []uint32{2, 2}, []uint8{1, 2, 3, 4}))
	f.Add(gzipped(idxFile(0x0e, []uint32{2}, []float64{1, 2})))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		files.Check(t, len(b), func() { readAll(t, dir, "x.idx", b, Input{Name: "x"}) })
	})
}

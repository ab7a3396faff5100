package signal

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/cmplx"
	"os"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// run runs one node of that opset.
func run(typ string, version int64, attrs []*ir.Attr, in ...*ir.Array) (*ir.Array, error) {
	out, err := optest.Run(Ops(), optest.Case{Type: typ, Version: version, In: in, Attrs: attrs, Workers: 2})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func num(name string, i int64) *ir.Attr { return &ir.Attr{Name: name, I: i} }

func scalarOf(i int64) *ir.Array { return ir.ArrayOf([]int64{i}) }

func near(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(g, w float64) bool { return math.Abs(g-w) <= 1e-12*max(1, math.Abs(w)) })
}

// wave is a signal of n samples with that number of parts.
func wave(n, parts int) []float64 {
	x := make([]float64, n*parts)
	for i := range x {
		x[i] = math.Sin(float64(i*i)) + 0.1*float64(i%7)
	}
	return x
}

// sumOf is the k-th bin by the definition of the transform.
func sumOf(x []float64, parts, n, k int) complex128 {
	sum := complex(0, 0)
	for i := range min(n, len(x)/parts) {
		v := complex(x[i*parts], 0)
		if parts == 2 {
			v = complex(x[i*parts], x[i*parts+1])
		}
		sum += v * cmplx.Exp(complex(0, -2*math.Pi*float64(i*k%n)/float64(n)))
	}
	return sum
}

func TestTransformsAreSums(t *testing.T) {
	for _, size := range []int{1, 2, 5, 8, 13, 60, 97} {
		for _, n := range []int{size, size + 3, (size + 1) / 2} {
			for parts := 1; parts <= 2; parts++ {
				x := wave(size, parts)
				got, err := run("DFT", 20, nil, ir.ArrayOf(x, 1, int64(size), int64(parts)), scalarOf(int64(n)))
				if err != nil {
					t.Fatal(err)
				}
				for k := range n {
					y, want := ir.View[float64](got), sumOf(x, parts, n, k)
					if cmplx.Abs(complex(y[2*k], y[2*k+1])-want) > 1e-11*float64(n) {
						t.Errorf("%d samples, length %d: bin %d is %v%+vi, want %v", size, n, k, y[2*k], y[2*k+1], want)
					}
				}
			}
		}
	}
}

func TestInverseTransformsGoBack(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 8} {
		for _, onesided := range []int64{0, 1} {
			x := ir.ArrayOf(wave(int(n), 1), n, 1)
			axis := ir.ArrayOf([]int64{0})
			y, err := run("DFT", 20, []*ir.Attr{num("onesided", onesided)}, x, nil, axis)
			if err != nil {
				t.Fatal(err)
			}
			if want := []int64{n, n/2 + 1}[onesided]; y.Shape[0] != want {
				t.Errorf("length %d, onesided %d: %d bins, want %d", n, onesided, y.Shape[0], want)
			}
			back, err := run("DFT", 20, []*ir.Attr{num("onesided", onesided), num("inverse", 1)}, y, scalarOf(n), axis)
			if err != nil {
				t.Fatal(err)
			}
			var got []float64
			for parts := range slices.Chunk(ir.View[float64](back), int(back.Shape[1])) {
				got = append(got, parts[0])
			}
			if !near(got, ir.View[float64](x)) {
				t.Errorf("length %d, onesided %d: %v, want %v", n, onesided, got, ir.View[float64](x))
			}
		}
	}
}

// Up to opset 19 the axis is an attribute, with default 1; from 20 an input, with default -2.
func TestAxisOfOpsets(t *testing.T) {
	x := ir.ArrayOf(wave(24, 1), 2, 3, 4, 1)
	for _, c := range []struct{ version, axis int64 }{{17, 1}, {20, 2}} {
		got, err := run("DFT", c.version, nil, x)
		if err != nil {
			t.Fatal(err)
		}
		want, err := run("DFT", 20, nil, x, nil, scalarOf(c.axis))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Data, want.Data) {
			t.Errorf("opset %d does not transform axis %d", c.version, c.axis)
		}
	}
}

func TestFramesAreTransformed(t *testing.T) {
	x, window := wave(10, 1), []float64{0.5, 1, 2, 1}
	got, err := run("STFT", 17, nil, ir.ArrayOf(x, 1, 10, 1), scalarOf(3), ir.ArrayOf(window, 4))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Shape, []int64{1, 3, 3, 2}) {
		t.Fatalf("shape %v", got.Shape)
	}
	for frame := range 3 {
		part := slices.Clone(x[3*frame : 3*frame+4])
		for i := range part {
			part[i] *= window[i]
		}
		for k := range 3 {
			y, want := ir.View[float64](got)[(frame*3+k)*2:], sumOf(part, 1, 4, k)
			if cmplx.Abs(complex(y[0], y[1])-want) > 1e-12 {
				t.Errorf("frame %d bin %d: %v%+vi, want %v", frame, k, y[0], y[1], want)
			}
		}
	}
}

// Exporters of feature extractors write signals without the last axis of one element.
func TestSignalOfTwoAxes(t *testing.T) {
	x := wave(10, 1)
	want, err := run("STFT", 17, nil, ir.ArrayOf(x, 1, 10, 1), scalarOf(3), nil, scalarOf(4))
	if err != nil {
		t.Fatal(err)
	}
	got, err := run("STFT", 17, nil, ir.ArrayOf(x, 1, 10), scalarOf(3), nil, scalarOf(4))
	if err != nil || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Data, want.Data) {
		t.Errorf("%v, want %v: %v", got, want, err)
	}
}

// The expected values are sums of cosines at 0, π/2, π, 3π/2 or, symmetric, at 0, 2π/3, 4π/3, 2π.
func TestWindows(t *testing.T) {
	for _, c := range []struct {
		name                string
		periodic, symmetric []float64
	}{
		{"HannWindow", []float64{0, 0.5, 1, 0.5}, []float64{0, 0.75, 0.75, 0}},
		{"HammingWindow", []float64{4. / 46, 25. / 46, 1, 25. / 46}, []float64{4. / 46, 35.5 / 46, 35.5 / 46, 4. / 46}},
		{"BlackmanWindow", []float64{0, 0.34, 1, 0.34}, []float64{0, 0.63, 0.63, 0}},
	} {
		for periodic, want := range [][]float64{c.symmetric, c.periodic} {
			got, err := run(c.name, 17, []*ir.Attr{num("periodic", int64(periodic)),
				num("output_datatype", int64(ir.Double))}, scalarOf(4))
			if err != nil {
				t.Fatal(err)
			}
			if !near(ir.View[float64](got), want) {
				t.Errorf("%s, periodic %d: %v, want %v", c.name, periodic, ir.View[float64](got), want)
			}
		}
	}
}

func TestPicturesInEveryFormat(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	img.Set(0, 0, color.NRGBA{10, 20, 30, 255})
	img.Set(1, 0, color.NRGBA{255, 255, 255, 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	// 0.299·10 + 0.587·20 + 0.114·30 = 18.15
	for format, want := range map[string][]byte{"RGB": {10, 20, 30, 255, 255, 255},
		"BGR": {30, 20, 10, 255, 255, 255}, "Grayscale": {18, 255}} {
		got, err := run("ImageDecoder", 20, []*ir.Attr{{Name: "pixel_format", S: format}},
			ir.ArrayOf(b.Bytes(), int64(b.Len())))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Data, want) || !slices.Equal(got.Shape, []int64{1, 2, int64(len(want) / 2)}) {
			t.Errorf("%s: %v %v, want %v", format, got, got.Data, want)
		}
	}
}

// WebP is decoded without internal/dataset, whose testdata/pictures.py wrote these: the lossless one exactly, and the
// lossy one with its full range of colours.
func TestWebP(t *testing.T) {
	const height, width = 16, 24
	for name, levels := range map[string]int{"orientation6": 0, "lossy": 8} {
		data, err := os.ReadFile("../../dataset/testdata/pictures/" + name + ".webp")
		if err != nil {
			t.Fatal(err)
		}
		got, err := run("ImageDecoder", 20, nil, ir.ArrayOf(data, int64(len(data))))
		if err != nil || !slices.Equal(got.Shape, []int64{height, width, 3}) {
			t.Errorf("%s: got %v, %v", name, got, err)
			continue
		}
		for i, v := range got.Data {
			y, x := i/3/width, i/3%width
			want := []int{60 + 4*x, 200 - 6*y, 90 + 2*x + 3*y}[i%3]
			if max(int(v)-want, want-int(v)) > levels {
				t.Fatalf("%s: channel %d of pixel (%d, %d) is %d, want %d", name, i%3, y, x, v, want)
			}
		}
	}
}

func TestBrokenPicturesAreEmpty(t *testing.T) {
	got, err := run("ImageDecoder", 20, nil, ir.ArrayOf([]byte("GIF8?"), 5))
	if err != nil || !slices.Equal(got.Shape, []int64{0, 0, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// Weights 3/4 and 1/4, halves down and up alternately (libjpeg-turbo's h2v1_fancy_upsample).
func TestChromaIsInterpolated(t *testing.T) {
	img := image.NewYCbCr(image.Rect(0, 0, 6, 1), image.YCbCrSubsampleRatio422)
	copy(img.Cb, []byte{0, 100, 102})
	u := newUpsampledImage(img)
	for x, want := range []int32{0, 25, 75, 101, 101, 102} {
		if got := u.chroma(img.Cb, x, 0); got != want {
			t.Errorf("place %d: %d, want %d", x, got, want)
		}
	}
}

func TestBadInputsAreErrors(t *testing.T) {
	x := ir.ArrayOf(wave(4, 1), 1, 4, 1)
	for _, c := range []struct {
		typ   string
		attrs []*ir.Attr
		in    []*ir.Array
	}{
		{"DFT", nil, []*ir.Array{ir.ArrayOf(wave(3, 1), 1, 1, 3)}},
		{"DFT", nil, []*ir.Array{x, scalarOf(0)}},
		{"DFT", nil, []*ir.Array{x, nil, scalarOf(2)}},
		{"DFT", nil, []*ir.Array{x, nil, scalarOf(9)}},
		{"DFT", []*ir.Attr{num("onesided", 1), num("inverse", 1)}, []*ir.Array{x}},
		{"DFT", nil, []*ir.Array{ir.ArrayOf([]float64{}, 1, 0, 1)}},
		{"STFT", nil, []*ir.Array{x, scalarOf(0)}},
		{"STFT", nil, []*ir.Array{x, scalarOf(1), nil, scalarOf(5)}},
		{"STFT", nil, []*ir.Array{x, scalarOf(1), ir.ArrayOf(wave(3, 1), 3), scalarOf(4)}},
		{"HannWindow", nil, []*ir.Array{scalarOf(-1)}},
		{"HannWindow", []*ir.Attr{num("output_datatype", int64(ir.String))}, []*ir.Array{scalarOf(2)}},
		{"MelWeightMatrix", nil, []*ir.Array{scalarOf(8), scalarOf(16), scalarOf(8192), ir.ArrayOf([]float32{5}),
			ir.ArrayOf([]float32{4})}},
		{"ImageDecoder", nil, []*ir.Array{x}},
		{"ImageDecoder", []*ir.Attr{{Name: "pixel_format", S: "CMYK"}}, []*ir.Array{ir.ArrayOf([]byte{1}, 1)}},
	} {
		if out, err := run(c.typ, 20, c.attrs, c.in...); err == nil {
			t.Errorf("%s of %v gives %v", c.typ, c.in, out)
		}
	}
}

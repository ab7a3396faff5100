package dataset

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

func generated(t testing.TB, in []Input, r Random) []*Batch {
	t.Helper()
	s, err := Generate(in, r)
	if err != nil {
		t.Fatal(err)
	}
	return all(t, s, Order{})
}

// Inputs of Generate have the types of Specs, which also has those of inputs that are too large to be generated.
func TestSpecsMatchGenerate(t *testing.T) {
	in := inputs(input("a", "float[n,3,h,w]"), input("b", "int64[2,m]"))
	r := Random{Batch: 3, Dims: map[string]int64{"h": 5}}
	specs, err := Specs(in, r)
	if err != nil {
		t.Fatal(err)
	}
	made := generated(t, in, r)[0].Inputs
	for i, want := range specs {
		if got := made[in[i].Name]; want.Name != in[i].Name || got.String() != want.String() {
			t.Errorf("input %q is %s, want %q of %s", in[i].Name, got, want.Name, want)
		}
	}
	if specs, err = Specs(in, Random{Batch: 1 << 40}); err != nil || specs[0].Shape[0] != 1<<40 {
		t.Errorf("got %v, %v, want a batch of 2^40", specs, err)
	}
}

// Every shared model has random inputs, except those whose inputs are not tensors.
func TestGenerateForSharedModels(t *testing.T) {
	for _, path := range append(conform.RealModels(t), conform.Fixtures(t)...) {
		f, err := onnx.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range Inputs(f.Model.Graph) {
			a := generated(t, inputs(in), Random{})[0].Inputs[in.Name]
			if _, ok := fitExactly(in.dims(nil), a.Shape); !ok || a.DType != in.elem() {
				t.Errorf("%s: %q is %s, want %s", path, in.Name, a, typeText(in.Type))
			}
		}
		f.Close()
	}
}

// An input depends on seed, name and run only.
func TestGenerateIsDeterministic(t *testing.T) {
	in := inputs(input("a", "float[n,3]"), input("b", "int64[n,5]"))
	want := generated(t, in, Random{Seed: 1, Samples: 4})
	for _, r := range []Random{{Seed: 1, Samples: 4, Workers: 8}, {Seed: 1, Samples: 9, Workers: 1, Memory: 1}} {
		for i, b := range generated(t, inputs(in[1], input("c", "float[2]"), in[0]), r)[:4] {
			for _, name := range []string{"a", "b"} {
				if !bytes.Equal(b.Inputs[name].Data, want[i].Inputs[name].Data) {
					t.Errorf("run %d of %q differs", i, name)
				}
			}
		}
	}
	a := func(r Random) []byte { return generated(t, in, r)[0].Inputs["a"].Data }
	if bytes.Equal(a(Random{Seed: 2}), want[0].Inputs["a"].Data) ||
		bytes.Equal(want[1].Inputs["a"].Data, want[0].Inputs["a"].Data) {
		t.Error("another seed or run gives the same input")
	}
}

func TestGenerateShapes(t *testing.T) {
	in := inputs(
		input("ids", "int64[batch,seq]"), input("state", "float[2,?,128]"), input("image", "float[?,3,h,w]"),
		input("past", "float[2,batch,4,past_seq,8]"), input("mask", "int64[batch,total_seq]"),
		input("sum", "float[past_seq + 1]"), scalar("rate", "int64"),
	)
	for _, tt := range []struct {
		r    Random
		want map[string][]int64
	}{
		{Random{}, map[string][]int64{
			"ids": {1, 16}, "state": {2, 1, 128}, "image": {1, 3, 64, 64}, "past": {2, 1, 4, 16, 8}, "mask": {1, 32},
			"sum": {17}, "rate": {},
		}},
		{Random{Batch: 4, Dims: map[string]int64{"seq": 7, "past_seq": 0, "h": 32}}, map[string][]int64{
			"ids": {4, 7}, "state": {2, 4, 128}, "image": {4, 3, 32, 64}, "past": {2, 4, 4, 0, 8}, "mask": {4, 7},
			"sum": {1}, "rate": {},
		}},
		{Random{Dims: map[string]int64{"batch": 3, "total_seq": 9}}, map[string][]int64{"ids": {3, 16}, "mask": {3, 9}}},
	} {
		b := generated(t, in, tt.r)[0]
		for name, want := range tt.want {
			if got := b.Inputs[name].Shape; !slices.Equal(got, want) {
				t.Errorf("%+v: %q is %v, want %v", tt.r, name, got, want)
			}
		}
	}
}

// The first moments of a standard normal distribution, within six standard errors.
func TestGenerateNormal(t *testing.T) {
	const n = 100000
	for _, elem := range []string{"float", "double", "float16", "complex64"} {
		a := generated(t, inputs(input("x", elem+"[100000]")), Random{Seed: 3})[0].Inputs["x"]
		value := map[string]func(int) float64{
			"float":     func(i int) float64 { return float64(ir.View[float32](a)[i]) },
			"double":    func(i int) float64 { return ir.View[float64](a)[i] },
			"float16":   func(i int) float64 { return float64(float16.Frombits(ir.View[uint16](a)[i]).Float32()) },
			"complex64": func(i int) float64 { return float64(imag(ir.View[complex64](a)[i])) },
		}[elem]
		var sum, squares, fourths float64
		for i := range n {
			v := value(i)
			sum, squares, fourths = sum+v, squares+v*v, fourths+v*v*v*v
		}
		if math.Abs(sum/n) > 6/math.Sqrt(n) || math.Abs(squares/n-1) > 6*math.Sqrt(2/float64(n)) ||
			math.Abs(fourths/n-3) > 6*math.Sqrt(96/float64(n)) {
			t.Errorf("%s: moments %v, %v, %v", elem, sum/n, squares/n, fourths/n)
		}
	}
}

func TestGenerateIntegers(t *testing.T) {
	for _, tt := range []struct {
		in     Input
		ranges map[string][2]int64
		lo, hi int64
	}{
		{input("x", "int64[2000]"), nil, 0, 1},
		{input("x", "bool[2000]"), nil, 0, 1},
		{input("attention_mask", "int64[2000]"), nil, 1, 1},
		{input("x", "uint8[20000]"), nil, 0, 255},
		{input("x", "int8[20000]"), nil, -128, 127},
		{input("x", "int32[2000]"), map[string][2]int64{"x": {-2, 3}}, -2, 3},
		{input("x", "uint64[2000]"), map[string][2]int64{"x": {5, 5}}, 5, 5},
	} {
		b := generated(t, inputs(tt.in), Random{Ranges: tt.ranges})[0]
		v, err := convert(t, b.Inputs[tt.in.Name], ir.Int64)
		if err != nil {
			t.Fatal(err)
		}
		if is := ir.View[int64](v); slices.Min(is) != tt.lo || slices.Max(is) != tt.hi {
			t.Errorf("%s: %d to %d, want %d to %d", typeText(tt.in.Type), slices.Min(is), slices.Max(is), tt.lo, tt.hi)
		}
	}
	full := generated(t, inputs(input("x", "int64[200]")),
		Random{Ranges: map[string][2]int64{"x": {math.MinInt64, math.MaxInt64}}})[0]
	if is := ir.View[int64](full.Inputs["x"]); slices.Min(is) > -1<<61 || slices.Max(is) < 1<<61 {
		t.Errorf("the whole range: %d to %d", slices.Min(is), slices.Max(is))
	}
}

// Types that Go does not have: no NaN, no infinity, no bits after the end, and both signs for signed types.
func TestGenerateOtherTypes(t *testing.T) {
	const n = 1001
	nan := map[string]func(byte) bool{
		"float8e4m3fn":   func(b byte) bool { return b&0x7f == 0x7f },
		"float8e5m2":     func(b byte) bool { return b&0x7f >= 0x7c },
		"float8e4m3fnuz": func(b byte) bool { return b == 0x80 },
		"float8e5m2fnuz": func(b byte) bool { return b == 0x80 },
		"float8e8m0":     func(b byte) bool { return b == 0xff },
	}
	for _, elem := range []string{"uint4", "int4", "uint2", "int2", "float4e2m1", "float6e2m3", "float6e3m2",
		"float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz", "float8e8m0"} {
		a := generated(t, inputs(input("x", elem+"[1001]")), Random{})[0].Inputs["x"]
		if int64(len(a.Data)) != a.Bytes() || slices.Min(a.Data) == slices.Max(a.Data) {
			t.Errorf("%s: %d bytes", elem, len(a.Data))
		}
		if f := nan[elem]; f != nil && slices.ContainsFunc(a.Data, f) {
			t.Errorf("%s: contains a NaN or an infinity", elem)
		}
		if rest := n * a.DType.Bits() % 8; rest > 0 && a.Data[len(a.Data)-1]>>rest != 0 {
			t.Errorf("%s: bits after the end", elem)
		}
	}
	words := generated(t, inputs(input("x", "string[9]")), Random{})[0].Inputs["x"].Text
	if len(words) != 9 || slices.Contains(words, "") {
		t.Errorf("words %q", words)
	}
}

func TestGenerateFills(t *testing.T) {
	b := generated(t, inputs(scalar("sr", "int64"), input("x", "float[n,4]")),
		Random{Batch: 2, Fill: map[string]float64{"sr": 16000, "x": 0.5}})[0]
	if sr := ir.View[int64](b.Inputs["sr"]); sr[0] != 16000 {
		t.Errorf("sr is %v", sr)
	}
	if x := ir.View[float32](b.Inputs["x"]); !slices.Equal(x, []float32{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}) {
		t.Errorf("x is %v", x)
	}
}

func TestGenerateErrors(t *testing.T) {
	for _, tt := range []struct {
		in   Input
		r    Random
		want string
	}{
		{input("x", "float[2147483647,2147483647]"), Random{}, "too large"},
		{input("x", "float[n]"), Random{Batch: 1 << 40}, "--dim"},
		{input("x", "float"), Random{}, "rank"},
		{Input{Name: "x"}, Random{}, "unknown element type"},
		{Input{Name: "x", Kind: onnx.SequenceValue}, Random{}, "not a tensor"},
		{input("x", "int8[3]"), Random{Ranges: map[string][2]int64{"x": {0, 128}}}, "invalid range of int8: 0 to 128"},
		{input("x", "int64[3]"), Random{Ranges: map[string][2]int64{"x": {3, 2}}}, "invalid range of int64: 3 to 2"},
		{input("x", "int8[3]"), Random{Fill: map[string]float64{"x": 300}}, "300 does not fit"},
		{input("x", "int8[n]"), Random{Dims: map[string]int64{"n": -1}}, "negative"},
		{input("x", "int8[n,m]"), Random{Dims: map[string]int64{"n": 2, "k": 1}},
			"dim k: the inputs have no axis of that name; the nearest of their dynamic axes: m, n"},
		{input("x", "int8[past_n + n + 1]"), Random{Dims: map[string]int64{"n": 2, "1": 1}},
			"dim 1: the inputs have no axis of that name; the nearest of their dynamic axes: past_n + n + 1, n, past_n"},
		{input("x", "int8[3]"), Random{Dims: map[string]int64{"n": 2}}, "dim n: the inputs have no dynamic axes"},
		{input("x", "int8[n]"), Random{Fill: map[string]float64{"y": 1}}, `fill "y"`},
	} {
		_, err := Generate(inputs(tt.in), tt.r)
		requireError(t, err, tt.want)
	}
}

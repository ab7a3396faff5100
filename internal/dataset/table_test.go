package dataset

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestMagika(t *testing.T) {
	in, _ := model(t, "text/magika_v3_3")
	s := mustOpen(t, sharedFile(t, "datasets", "magika", "inputs.npz"), in, nil, Options{Labels: "label"})
	bs := all(t, s, Order{Size: 100})
	if s.Len() != 205 || len(bs) != 3 || !s.Labelled() {
		t.Fatalf("%d samples in %d batches", s.Len(), len(bs))
	}
	sameShape(t, bs[2].Inputs["bytes"], 5, 2048)
	if a := bs[0].Inputs["bytes"]; a.DType != ir.Int32 {
		t.Errorf("bytes is %s", a)
	}
}

// 16-bit ids and 8-bit masks are converted to int64; an input that is missing in the file and does not follow from the
// ids is an error.
func TestTokens(t *testing.T) {
	path := sharedFile(t, "datasets", "sms_spam", "sms800_tokens.npz")
	in, _ := model(t, "transformer/minilm_l6_v2_vocab3086")
	_, err := Open(path, append(inputs(input("kind", "int64[batch,seq]")), in...), nil, Options{})
	requireError(t, err, path, `no array for input "kind"`, `"attention_mask", "input_ids", "is_test", "labels"`,
		"--fill kind=VALUE")
	s := mustOpen(t, path, in, nil, Options{})
	bs := all(t, s, Order{Size: 64})
	last := bs[len(bs)-1]
	for _, i := range in {
		a := last.Inputs[i.Name]
		sameShape(t, a, 32, 96)
		if a.DType != ir.Int64 {
			t.Errorf("%s is %s", i.Name, a)
		}
	}
	if v := ir.View[int64](last.Inputs["token_type_ids"]); slices.Max(v) != 0 || slices.Min(v) != 0 {
		t.Error("token_type_ids is not 0")
	}
	if v := ir.View[int64](last.Inputs["attention_mask"]); slices.Max(v) != 1 || slices.Min(v) != 0 {
		t.Error("attention_mask is not of 0 and 1")
	}
}

func TestFolderOfArrays(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.npy"), npy(count[float32](6, 2)))
	write(t, filepath.Join(dir, "sub", "y:0.npy"), npy(count[int32](6)))
	write(t, filepath.Join(dir, "labels.npy"), npy(count[uint8](6)))
	write(t, filepath.Join(dir, "logits.npy"), npy(count[float64](6, 4)))
	in := inputs(input("x", "float[n,2]"), input("sub/y:0", "int64[n,1]"))
	s := mustOpen(t, dir, in, inputs(input("logits", "float[n,4]"), input("other", "float[n]")), Options{})
	b := all(t, s, Order{Size: 4})[1]
	sameShape(t, b.Inputs["x"], 2, 2)
	sameShape(t, b.Inputs["sub/y:0"], 2, 1)
	sameShape(t, b.Outputs["logits"], 2, 4)
	if !slices.Equal(s.Recorded(), []string{"logits"}) || b.Outputs["logits"].DType != ir.Float ||
		!slices.Equal(b.Classes(), []int64{4, 5}) {
		t.Errorf("recorded %q %s, labels %v", s.Recorded(), b.Outputs["logits"], b.Classes())
	}
	_, err := Open(dir, inputs(input("../x", "float[n,2]"), in[1]), nil, Options{})
	requireError(t, err, `no array for input "../x"`)
}

func TestSeparateLabels(t *testing.T) {
	x := npz(t, true, map[string]*ir.Array{"x": count[float32](3, 2),
		"y": ir.ArrayOf([]float64{0, 1, 0.5, 0.5, 0.25, 0.75}, 3, 2)})
	in := inputs(input("x", "float[n,2]"))
	idx := file(t, "labels.gz", gzipped(idxFile(8, []uint32{3}, []uint8{7, 8, 9})))
	s := mustOpen(t, x, in, nil, Options{Labels: idx})
	if got := ids(all(t, s, Order{Size: 2})); !slices.Equal(got, []int64{7, 8, 9}) {
		t.Errorf("labels %v", got)
	}
	soft := all(t, mustOpen(t, x, in, nil, Options{Labels: "y"}), Order{Size: 3})[0]
	if sameShape(t, soft.Labels, 3, 2); soft.Labels.DType != ir.Double || soft.Classes() != nil {
		t.Errorf("labels %s", soft.Labels)
	}
	for _, tt := range []struct{ labels, want string }{
		{"z", `no array or file "z" for labels; the arrays are "x", "y"`},
		{file(t, "four.npy", npy(count[int64](4))), "4 samples"},
		{file(t, "labels.txt", []byte("a\nb\n")), ".npy, IDX or .jsonl"},
	} {
		_, err := Open(x, in, nil, Options{Labels: tt.labels})
		requireError(t, err, tt.want)
	}
}

// Recorded outputs and states of a model without a batch axis: a sample is a whole run.
func TestSamplesAreWholeRuns(t *testing.T) {
	path := npz(t, false, map[string]*ir.Array{
		"input": count[float32](3, 512), "state": count[float32](3, 2, 1, 128), "stateN": count[float32](3, 2, 1, 128),
	})
	in := inputs(input("input", "float[?,?]"), input("state", "float[2,?,128]"), scalar("sr", "int64"))
	s := mustOpen(t, path, in, inputs(input("stateN", "float[?,?,?]")), Options{Fill: map[string]float64{"sr": 16000}})
	bs := all(t, s, Order{Size: 8})
	if len(bs) != 3 || s.Size(8) != 1 {
		t.Fatalf("%d batches", len(bs))
	}
	b := bs[1]
	sameShape(t, b.Inputs["input"], 1, 512)
	sameShape(t, b.Inputs["state"], 2, 1, 128)
	sameShape(t, b.Outputs["stateN"], 2, 1, 128)
	sameShape(t, b.Inputs["sr"])
	if ir.View[int64](b.Inputs["sr"])[0] != 16000 || ir.View[float32](b.Inputs["state"])[0] != 256 {
		t.Errorf("sr %v, state %v", b.Inputs["sr"].Data, ir.View[float32](b.Inputs["state"])[0])
	}
}

func TestReshape(t *testing.T) {
	path := npz(t, true, map[string]*ir.Array{"x": count[uint8](2, 28, 28)})
	in := inputs(input("x", "float[n,784]"))
	_, err := Open(path, in, nil, Options{})
	requireError(t, err, "[28 28]", "float[n,784]", "--reshape")
	b := all(t, mustOpen(t, path, in, nil, Options{Reshape: []int64{784}}), Order{Size: 2})[0]
	sameShape(t, b.Inputs["x"], 2, 784)
	_, err = Open(path, in, nil, Options{Reshape: []int64{783}})
	requireError(t, err, "[28 28]", "cannot be reshaped to [783]")
}

// The shape of a filled input is derived from those of the others.
func TestShapesOfFilledInputs(t *testing.T) {
	path := npz(t, true, map[string]*ir.Array{"x": count[float32](4, 5), "y": count[float32](4, 7, 2)})
	data := inputs(input("x", "float[n,seq]"), input("y", "float[?,?,2]"))
	for _, tt := range []struct {
		typ  string
		dims map[string]int64
		want []int64
	}{
		{"float[n,seq]", nil, []int64{3, 5}},
		{"float[seq]", nil, []int64{5}},
		{"float[?]", nil, []int64{3}},
		{"float[?,?,9]", nil, []int64{3, 7, 9}},
		{"float16[2,n,heads]", map[string]int64{"heads": 0}, []int64{2, 3, 0}},
		{"float[3,?]", nil, []int64{3, 5}},
		{"bool[6]", nil, []int64{6}},
	} {
		in := append(slices.Clone(data), input("z", tt.typ))
		o := Options{Fill: map[string]float64{"z": 1}, Dims: tt.dims}
		z := all(t, mustOpen(t, path, in, nil, o), Order{Size: 3})[0].Inputs["z"]
		sameShape(t, z, tt.want...)
		for i := range z.Elems() {
			if text(z, int(i)) != "1" {
				t.Errorf("%s: element %d is %s", tt.typ, i, text(z, int(i)))
			}
		}
	}
	for _, tt := range []struct {
		typ  string
		v    float64
		want string
	}{
		{"float[n,heads]", 0, "--dim heads=N"},
		{"float[3,?,?,?]", 0, "axis 1"},
		{"float", 0, "known shape"},
		{"int8[n]", 300, "300 does not fit int8"},
		{"string[n]", 0, "cannot be filled"},
		{"float[2000000000]", 0, "too large"},
	} {
		in := append(slices.Clone(data), input("z", tt.typ))
		_, err := Open(path, in, nil, Options{Fill: map[string]float64{"z": tt.v}})
		requireError(t, err, `"z"`, tt.want)
	}
}

func TestIncompatibleData(t *testing.T) {
	arrays := map[string]*ir.Array{"x": count[float32](4, 3), "y": count[float32](5, 3), "ids": count[int32](4, 3),
		"big": ir.ArrayOf([]int64{1, 2, 3, 1 << 40}, 4)}
	path := npz(t, false, arrays)
	x, y := input("x", "float[n,3]"), input("y", "float[n,3]")
	for _, tt := range []struct {
		name string
		in   []Input
		o    Options
		want []string
	}{
		{"no such array", inputs(x, input("z", "float[n]")), Options{}, []string{`"z"`, `"big", "ids", "x", "y"`}},
		{"another number of samples", inputs(x, y), Options{}, []string{"5 samples", `"x" has 4`}},
		{"another shape", inputs(input("x", "float[n,4]")), Options{}, []string{"[3]", "float[n,4]"}},
		{"another type", inputs(input("x", "string[n,3]")), Options{}, []string{`array "x"`, "from float to string"}},
		{"values that do not fit", inputs(input("big", "int32[n]")), Options{},
			[]string{"sample 3", "1099511627776 does not fit int32"}},
		{"fractions", inputs(input("x", "float[n,3]"), input("ids", "int64[n,3]")), Options{Reshape: []int64{3}},
			[]string{"reshape is for models of one input"}},
		{"a scale for integers", inputs(input("ids", "int64[n,3]")), Options{Scale: 2}, []string{"the model has none"}},
		{"two inputs to scale", inputs(x, input("ids", "float[n,3]")), Options{Scale: 2},
			[]string{"one floating-point input"}},
		{"two fixed batches", inputs(input("x", "float[2,3]"), input("ids", "int32[4,3]")), Options{},
			[]string{"int32[4,3]", "batch size of 2"}},
		{"nothing to read", inputs(x), Options{Fill: map[string]float64{"x": 0}}, []string{"no input that is read"}},
		{"a fill of no input", inputs(x), Options{Fill: map[string]float64{"y": 0}},
			[]string{`fill "y"`, `the inputs are "x"`}},
		{"std of zero", inputs(x), Options{Std: []float64{0}}, []string{"std must not be 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Open(path, tt.in, nil, tt.o)
			if err == nil {
				defer s.Close()
				for _, err = range s.Batches(t.Context(), Order{Size: 4}) {
				}
			}
			requireError(t, err, tt.want...)
		})
	}
}

func TestUnknownFormats(t *testing.T) {
	in := inputs(input("x", "float[n]"))
	empty := t.TempDir()
	for path, want := range map[string]string{
		file(t, "a.txt", []byte("x")):             "unknown data format",
		file(t, "empty.npz", nil):                 "unknown data format",
		file(t, "bad.npz", []byte("PK\x03\x04x")): "not a valid .npz file",
		empty:                         "unknown data format",
		filepath.Join(empty, "x.npz"): "no such file",
		npz(t, true, map[string]*ir.Array{"x": count[float32](1)}) + ",b": "one path",
	} {
		_, err := Open(path, in, nil, Options{})
		requireError(t, err, want)
	}
	_, err := Open(file(t, "x.npy", npy(count[float32](2))), append(in, input("y", "float[n]")), nil, Options{})
	requireError(t, err, "the data is one array", ".npz")
}

package dataset

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// Sizes that the graphs of shared models require: a kernel of 256 less a padding of 64, and feature 19.
func TestSizesAreSolvedFromTheGraph(t *testing.T) {
	for path, want := range map[string][]int64{
		"models/audio/silero_vad/model.onnx":                              {1, 192},
		"conformance/small/onnx_sklearn-onnx/tests/datasets/treecl2.onnx": {1, 20},
	} {
		f, err := onnx.Open(filepath.Join(conform.Shared(t), "fixtures", path))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		specs, err := Specs(Inputs(f.Model.Graph), Random{})
		if err != nil {
			t.Fatal(err)
		}
		if got := specs[0].Shape; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// An input is a picture if it has the channels of one, or is convolved.
func TestPictures(t *testing.T) {
	m := ir.NewModel()
	m.Opsets = []ir.Opset{{Version: 17}}
	read := func(in Input, op string) Input {
		in.value = m.Graph.AddValue(in.Name)
		in.value.Type = in.Type
		m.Graph.Inputs = append(m.Graph.Inputs, in.value)
		n := m.Graph.NewNode(ir.OpID{Type: op}, []*ir.Value{in.value})
		n.SetOutputs(m.Graph.NewValue(op))
		m.Graph.Append(n)
		return in
	}
	for _, c := range []struct {
		in   Input
		op   string
		want []int64
	}{
		{input("nchw", "float[?,3,h,w]"), "MatMul", []int64{1, 3, 64, 64}},
		{input("nhwc", "float[?,h,w,3]"), "MatMul", []int64{1, 64, 64, 3}},
		{input("features", "float[?,24,h,w]"), "GlobalMaxPool", []int64{1, 24, 64, 64}},
		{input("scores", "float[?,24,h,w]"), "MatMul", []int64{1, 24, 16, 16}},
		{input("cache", "float[?,4,positions,8]"), "MatMul", []int64{1, 4, 16, 8}},
		{input("ids", "int64[?,3,h,w]"), "MatMul", []int64{1, 3, 16, 16}},
	} {
		specs, err := Specs(inputs(read(c.in, c.op)), Random{})
		if err != nil || !slices.Equal(specs[0].Shape, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.in.Name, specs, err, c.want)
		}
	}
}

// An error of a run names the axes whose sizes were chosen; an axis without a name is INPUT:INDEX, and can be given.
func TestChosenSizesAreNamed(t *testing.T) {
	in := inputs(input("x", "float[batch,?,len]"))
	s, err := Generate(in, Random{Dims: map[string]int64{"len": 3}})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("failed")
	err = s.Explain(s.Explain(cause))
	if want := "failed; sizes chosen for dynamic axes: x:1=16; set others with --dim NAME=N"; !errors.Is(err, cause) ||
		err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	specs, err := Specs(in, Random{Dims: map[string]int64{"x:1": 5, "len": 3}})
	if err != nil || !strings.HasSuffix(specs[0].String(), "[1,5,3]") {
		t.Errorf("got %v, %v, want a size of 5", specs, err)
	}
}

package train

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// A recording is a file of testdata/make.py.
type recording struct {
	Updates []struct {
		Op           string
		Attrs        map[string]float32
		Rate, Decay  float32
		Start        []float64
		Grads, After [][]float64
	}
	Losses []struct {
		Op                 string
		Attrs              map[string]float32
		Shape, TargetShape []int64
		X, Target          []float64
		Loss               float64
		Gradient           []float64
	}
}

func torch(t *testing.T) recording {
	t.Helper()
	b, err := os.ReadFile("testdata/torch.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// attributes returns both integers and floats: each operator reads its own kind.
func attributes(from map[string]float32) []*ir.Attr {
	var attrs []*ir.Attr
	for name, v := range from {
		attrs = append(attrs, &ir.Attr{Name: name, F: v, I: int64(v)})
	}
	return attrs
}

func array(values []float64, shape ...int64) *ir.Array {
	return single(ir.ArrayOf(values, shape...))
}

func TestLossesEqualPyTorch(t *testing.T) {
	for i, c := range torch(t).Losses {
		target := array(c.Target, c.TargetShape...)
		if c.Op == "CrossEntropyLoss" {
			target = ir.NewArray(ir.Int64, c.TargetShape...)
			for k, v := range c.Target {
				ir.View[int64](target)[k] = int64(v)
			}
		}
		out := results(t, c.Op, 1, []*ir.Array{array(c.X, c.Shape...), target, optest.Scalar[float32](1)},
			attributes(c.Attrs)...)
		near(t, fmt.Sprint(c.Op, i, " loss"), out[0], []float64{c.Loss}, 1, 1e-6)
		near(t, fmt.Sprint(c.Op, i, " gradient"), out[1], c.Gradient, 1, 1e-6)
	}
}

func TestUpdatesEqualPyTorch(t *testing.T) {
	for i, c := range torch(t).Updates {
		w, m, v := array(c.Start, 3, 5), ir.NewArray(ir.Float, 3, 5), ir.NewArray(ir.Float, 3, 5)
		for step, grad := range c.Grads {
			g := array(grad, 3, 5)
			hyper := optest.Array(c.Rate, float32(step+1), 1, c.Decay)
			if limit := c.Attrs["clip"]; limit > 0 {
				squares := results(t, "SumSquares", 1, []*ir.Array{g})[0]
				hyper = results(t, "ClipFactor", 1, []*ir.Array{hyper, squares}, ir.FloatAttr("max_norm", limit))[0]
			}
			in := []*ir.Array{w, g, m, hyper}
			if c.Op == "AdamUpdate" {
				in = []*ir.Array{w, g, m, v, hyper}
			}
			results(t, c.Op, 1, in, attributes(c.Attrs)...)
			near(t, fmt.Sprint(c.Op, i, " step ", step), w, c.After[step], 1, 1e-6)
		}
	}
}

package tune

import (
	"context"
	"math"
	"path/filepath"
	"sort"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// Sensitivities on a few samples rank weights and methods like the divergence on all samples.
func TestRankingMatchesDivergence(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred runs of a real model")
	}
	shared := filepath.Join(conform.Shared(t), "fixtures")
	o := options(t, 2)
	o.Input = filepath.Join(shared, "models", "vision", "mnist_cnn_max3", "model.onnx")
	digits := filepath.Join(shared, "datasets", "mnist", "t10k-even")
	o.Data.Path = digits + "-images-idx3-ubyte.gz"
	o.Data.Options = dataset.Options{Labels: digits + "-labels-idx1-ubyte.gz", Scale: 1. / 255, Limit: 2500}
	o.Gates = []report.Limit{{Name: "max-accuracy-drop", Bound: 0.01}}
	search, err := Sensitivity(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := scores(t, o, o.Input)
	var measureAll, so []float64
	for _, l := range search.Layers {
		for _, v := range l.Variants {
			measureAll = append(measureAll, v.Sensitivity)
			so = append(so, diverged(want, scores(t, o, one(t, o, l.Tensors, v.Method))))
		}
	}
	if r := stat.Correlation(ranks(measureAll), ranks(so), nil); len(so) < 10 || r < 0.95 {
		t.Errorf("Spearman's rank correlation of %d variants is %.3f", len(so), r)
	}
}

// one is the file of the model with the given weights changed by a method.
func one(t *testing.T, o Options, weights []string, method string) string {
	t.Helper()
	for _, c := range o.Candidates {
		if c.Name != method {
			continue
		}
		step, err := c.Step(only(weights), Final, 0)
		if err != nil {
			t.Fatal(err)
		}
		tu := &tuner{Options: o}
		if tu.source, err = onnx.Open(o.Input); err != nil {
			t.Fatal(err)
		}
		defer tu.source.Close()
		b, err := tu.build(t.Context(), []pass.Options{step})
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		path := filepath.Join(t.TempDir(), "one.onnx")
		if _, err := onnx.Layout(b.Model, "one.onnx", onnx.LayoutOptions{}).Write(t.Context(), path,
			onnx.SaveOptions{Workers: 1, Memory: 64 << 20, Eval: b.eval}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Fatalf("no candidate is called %s", method)
	return ""
}

// scores are the logits of a model, sample by sample.
func scores(t *testing.T, o Options, path string) [][]float32 {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set, err := o.Data.Open(f.Model, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	s, err := engine.Open(context.Background(), f.Model, engine.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var rows [][]float32
	for b, err := range set.Batches(t.Context(), dataset.Order{Size: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Run(t.Context(), b.Inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range out {
			rows = append(rows, ir.View[float32](a))
		}
	}
	return rows
}

// diverged is the mean Kullback-Leibler divergence, from logits.
func diverged(want, got [][]float32) float64 {
	sum := 0.0
	for i := range want {
		a, b := total(want[i]), total(got[i])
		for k := range want[i] {
			p := math.Exp(float64(want[i][k]) - a)
			sum += p * (float64(want[i][k]) - a - float64(got[i][k]) + b)
		}
	}
	return sum / float64(len(want))
}

// total is the log-sum-exp.
func total(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v))
	}
	return math.Log(sum)
}

// ranks are the ranks of values in sorted order.
func ranks(x []float64) []float64 {
	at := make([]int, len(x))
	for i := range at {
		at[i] = i
	}
	sort.SliceStable(at, func(a, b int) bool { return x[at[a]] < x[at[b]] })
	out := make([]float64, len(x))
	for place, i := range at {
		out[i] = float64(place)
	}
	return out
}

package quantize

import (
	"context"
	"flag"
	"math"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// tokens is a transformer and the samples it is for.
const tokens = "../fixtures/transformer_tokens.npz"

// linears are all matrices of products of the model at path, in blocks of 16 rows, with a context to round them in.
func linears(t *testing.T, path string) (*pass.Context, []*matrix) {
	t.Helper()
	c := &pass.Context{Context: context.Background(), Model: opened(t, path).Model, Eval: ir.NewEval(t.TempDir()), Workers: 2}
	t.Cleanup(func() { c.Eval.Close() })
	var ls []*matrix
	for _, w := range Find(c, false) {
		for _, s := range w.Consumers {
			if s.Side == Right && len(s.Shape) == 2 && len(w.Consumers) == 1 {
				ls = append(ls, &matrix{weight: w.Base, node: s.Node, k: int(s.Shape[0]), n: int(s.Shape[1]), transposed: s.Transposed, grid: solve.Grid{Low: -8, High: 7, Symmetric: true, Block: 16, Half: w.Base.Const.DType == ir.Float16}})
			}
		}
	}
	return c, ls
}

// gptqOf is the algorithm with options as on the command line.
func gptqOf(t *testing.T, args ...string) *GPTQ {
	t.Helper()
	g, fs := &GPTQ{}, flag.NewFlagSet("", flag.ContinueOnError)
	bindGPTQ(fs, g)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return g
}

// after is the SQNR of the model's outputs, on samples that nothing was rounded by, with the weights that codes stand for.
func after(t *testing.T, c *pass.Context, ls []*matrix, codes func(l *matrix) *solve.Codes) float64 {
	t.Helper()
	before, pool := outputsOf(t, c.Model), op.NewPool(2)
	defer pool.Close()
	for _, l := range ls {
		original := l.weight.Const
		w := make([]float32, original.Elems())
		codes(l).Weights(pool, w)
		l.weight.SetConst(l.tensor(w))
		defer l.weight.SetConst(original)
	}
	var signal, noise float64
	for i, y := range outputsOf(t, c.Model) {
		signal += float64(before[i]) * float64(before[i])
		noise += float64(before[i]-y) * float64(before[i]-y)
	}
	return 10 * math.Log10(signal/noise)
}

// outputsOf are the elements of all outputs of m for the last samples.
func outputsOf(t *testing.T, m *ir.Model) (all []float32) {
	t.Helper()
	set, err := dataset.Open(tokens, dataset.Inputs(m.Graph), dataset.Outputs(m.Graph), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	e, err := engine.Open(context.Background(), m, engine.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var order dataset.Order
	for i := set.Len() / 2; i < set.Len(); i++ {
		order.Index = append(order.Index, i)
	}
	for b, err := range set.Batches(context.Background(), order) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Run(context.Background(), b.Inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range m.Graph.Outputs {
			all = append(all, ir.View[float32](out[v.Name])...)
		}
	}
	return all
}

// Outputs of the model on samples it has not seen are nearer to the original's than with weights rounded to the nearest codes.
func TestGPTQKeepsMoreOfTheOutputs(t *testing.T) {
	t.Run("float32", func(t *testing.T) { keepsMore(t, fixture("transformer")) })
	t.Run("float16", func(t *testing.T) { keepsMore(t, converted(t, computing, fixture("transformer"))) })
}

func keepsMore(t *testing.T, path string) {
	c, ls := linears(t, path)
	g := gptqOf(t, "--data", tokens, "--limit", "16")
	left, err := g.solve(c, ls)
	if err != nil || len(left) > 0 {
		t.Fatalf("left %v: %v", left, err)
	}
	got := after(t, c, ls, func(l *matrix) *solve.Codes {
		codes, err := l.load()
		if err != nil {
			t.Fatal(err)
		}
		return codes
	})
	want := after(t, c, ls, func(l *matrix) *solve.Codes {
		codes := solve.NewCodes(l.k, l.n, l.grid)
		w, err := (&gptqRun{c: c}).read(l)
		if err != nil {
			t.Fatal(err)
		}
		solve.Balanced(codes, w)
		return codes
	})
	if got <= want+1 {
		t.Errorf("SQNR %.2f dB, rounded to nearest %.2f dB", got, want)
	}
}

// solved is the algorithm as a user asks for it.
func solved(options ...string) variant {
	return variant{WeightInt4, append([]string{"algo=gptq"}, options...)}
}

// Every output is valid, smaller, of the same interface, and runs where the original does.
func TestGPTQHolds(t *testing.T) {
	w := conform.Start(t)
	for _, path := range conform.Fixtures(t) {
		t.Run(label(path), func(t *testing.T) { try(t, w, solved(), path) })
	}
	for _, v := range []variant{solved("symmetric", "act-order=false"), solved("per-channel"), solved("weight-type=int4", "block=16"), {WeightInt2, []string{"algo=gptq"}}, {WeightInt8, []string{"algo=gptq", "block=64"}}} {
		t.Run(v.String(), func(t *testing.T) { try(t, w, v, fixture("transformer")) })
	}
}

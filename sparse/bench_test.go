package sparse

import (
	"context"
	"io"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// benchmarkWeight is 16 MiB of float32, one in ten elements a value.
func benchmarkWeight() *ir.Tensor {
	w := random("w", ir.Float, []int64{2048, 2048}, density(.1))
	return &ir.Tensor{Spec: w.Spec, Source: ir.Mem(w.data)}
}

func BenchmarkMeasure(b *testing.B) {
	w, e := benchmarkWeight(), ir.NewEval("")
	for _, block := range []Block{{}, {Rows: 16, Cols: 16}} {
		b.Run(block.String(), func(b *testing.B) {
			b.SetBytes(w.Bytes())
			for b.Loop() {
				if _, err := measure(context.Background(), e, w, 0, block); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkForms(b *testing.B) {
	w, e := benchmarkWeight(), ir.NewEval("")
	m, err := measure(context.Background(), e, w, 0, Block{Rows: 16, Cols: 16})
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range layouts(m) {
		parts := payloads(l, w)
		dense := restore(l, "w")(kept(b, e, parts)).Source.(ir.Output).Of
		for name, r := range map[string]*ir.Recipe{"encode": parts[0].Source.(ir.Output).Of, "decode": dense} {
			b.Run(l.label()+"/"+l.parts()[1].DType.String()+"/"+name, func(b *testing.B) {
				b.SetBytes(w.Bytes())
				out := make([]io.Writer, len(r.Out))
				for i := range out {
					out[i] = io.Discard
				}
				for b.Loop() {
					if err := e.Run(context.Background(), r, out); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// kept are the tensors in memory, computed.
func kept(b *testing.B, e *ir.Eval, ts []*ir.Tensor) []*ir.Tensor {
	var out []*ir.Tensor
	for _, t := range ts {
		out = append(out, &ir.Tensor{Spec: t.Spec, Source: ir.Mem(payload(b, e, t))})
	}
	return out
}

// BenchmarkCost is the choice of a form for one weight, without reading it.
func BenchmarkCost(b *testing.B) {
	w := benchmarkWeight()
	m, err := measure(context.Background(), ir.NewEval(""), w, 0, Block{Rows: 16, Cols: 16})
	if err != nil {
		b.Fatal(err)
	}
	v := ir.NewModel().Graph.AddConst("w", w)
	for b.Loop() {
		for _, l := range layouts(m) {
			cost(l, v)
		}
	}
}

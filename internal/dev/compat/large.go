package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// A large is a model of at least 100 MB of one kind of layer, for measurements of memory: that of smaller models is
// mostly the runtime's own.
type large struct {
	name  string
	build func(b *builder)
}

// larges have buffers of 4 to 16 MiB, and a table in one of 100 MB: allocators return large buffers to the system at
// once, and keep small ones.
func larges() []large {
	return []large{
		{"large-products", func(b *builder) {
			x := b.input(ir.Float, 1024)
			for range 26 {
				x = b.Insert(nil, "Relu", []*ir.Value{b.Insert(nil, "MatMul", []*ir.Value{x, b.weight(1024, 1024)})})
			}
			b.output(x, 2)
		}},
		{"large-convolutions", func(b *builder) {
			x := b.input(ir.Float, 512, 8, 8)
			for range 11 {
				x = b.Insert(nil, "Relu", []*ir.Value{b.Insert(nil, "Conv", []*ir.Value{x, b.weight(512, 512, 3, 3)},
					ir.IntsAttr("pads", 1, 1, 1, 1))})
			}
			b.output(x, 4)
		}},
		{"large-recurrent", func(b *builder) {
			x := b.input(ir.Float, 1, 1024)
			directions := b.AddConst("directions",
				&ir.Tensor{Spec: ir.Spec{DType: ir.Int64, Shape: []int64{1}}, Source: ir.Ints(1)})
			for range 3 {
				in := []*ir.Value{x, b.weight(1, 4096, 1024), b.weight(1, 4096, 1024), b.weight(1, 8192)}
				x = b.Insert(nil, "Squeeze", []*ir.Value{b.Insert(nil, "LSTM", in, ir.IntAttr("hidden_size", 1024)),
					directions})
			}
			b.output(x, 3)
		}},
		{"large-table", func(b *builder) {
			rows := b.Insert(nil, "Gather", []*ir.Value{b.weight(50000, 512), b.input(ir.Int64, 16)})
			b.output(b.Insert(nil, "MatMul", []*ir.Value{rows, b.weight(512, 64)}), 3)
		}},
	}
}

// model is l as a model of a sweep in the folder, without data.
func (l large) model(folder string) model {
	return model{Name: l.name, Path: filepath.Join(folder, l.name+".onnx")}
}

// measuresMemory reports whether memory is measured in r: not in browsers, which have no figure, and not in the
// reference evaluator, which unpacks nothing by loading.
func (r runtime) measuresMemory() bool { return r.Adapter != "" && r.Adapter != "reference" }

// largeModels are all of them.
func largeModels(folder string) []model {
	var all []model
	for _, l := range larges() {
		all = append(all, l.model(folder))
	}
	return all
}

// writeLarge makes the file of a large model in the folder.
func writeLarge(ctx context.Context, name, folder string) (model, error) {
	l := larges()[slices.IndexFunc(larges(), func(l large) bool { return l.name == name })]
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	m.Graph.Name = l.name
	l.build(&builder{m.Graph})
	eval := ir.NewEval(folder)
	defer eval.Close()
	of := l.model(folder)
	_, err := onnx.Save(ctx, m, of.Path, onnx.SaveOptions{Eval: eval})
	return of, err
}

// A builder adds the values of a large model.
type builder struct{ *ir.Graph }

// input adds an input whose first axis has any size.
func (b *builder) input(elem ir.DType, shape ...int64) *ir.Value {
	v := b.AddValue("x")
	v.Type = &ir.Type{Elem: elem, Shape: []ir.Dim{{Param: "n"}}}
	for _, n := range shape {
		v.Type.Shape = append(v.Type.Shape, ir.Dim{N: n})
	}
	b.Inputs = append(b.Inputs, v)
	return v
}

func (b *builder) output(v *ir.Value, rank int) {
	v.Type = &ir.Type{Elem: ir.Float}
	for i := range rank {
		v.Type.Shape = append(v.Type.Shape, ir.Dim{Param: fmt.Sprintf("y%d", i)})
	}
	b.AddOutput(v)
}

// weight adds a constant of normal values, which are made while they are written.
func (b *builder) weight(shape ...int64) *ir.Value {
	name := fmt.Sprintf("w%d", len(b.Consts()))
	seed := uint64(len(b.Consts()))
	r := &ir.Recipe{Name: "normal", Out: []ir.Spec{{DType: ir.Float, Shape: shape}}}
	r.Run = func(ctx context.Context, _ []io.ReaderAt, out []io.Writer) error {
		rng, buffer := rand.New(rand.NewPCG(seed, 0)), make([]float32, 1<<16)
		for left := r.Out[0].Elems(); left > 0 && ctx.Err() == nil; left -= int64(len(buffer)) {
			buffer = buffer[:min(int64(len(buffer)), left)]
			for i := range buffer {
				buffer[i] = 0.03 * float32(rng.NormFloat64())
			}
			if _, err := out[0].Write(kernel.Bytes(buffer)); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	return b.AddConst(name, r.Derive()[0])
}

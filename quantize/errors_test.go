package quantize

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

var errDisk = errors.New("disk")

// A disk fails in one operation.
type disk struct{ left int }

func (d *disk) operate() error {
	if d.left--; d.left == 0 {
		return errDisk
	}
	return nil
}

func (d *disk) Write(b []byte) (int, error) { return len(b), d.operate() }

// A payload is read from a disk.
type payload struct {
	io.ReaderAt
	*disk
}

func (p payload) ReadAt(b []byte, off int64) (int, error) {
	if err := p.operate(); err != nil {
		return 0, err
	}
	return p.ReaderAt.ReadAt(b, off)
}

// convolutional is a model of a convolution with BatchNormalization and of two products, with float weights on a disk.
func convolutional(t *testing.T, d *disk) *ir.Model {
	s := newBuilder(t, 21)
	x := s.input("x", 1, 3, 8, 8)
	x = s.node("Conv", []*ir.Value{x, s.weight("conv", 16, 3, 3, 3), s.weight("b", 16)})
	variance := make([]float32, 16)
	for i := range variance {
		variance[i] = float32(i + 1)
	}
	v := s.AddConst("variance", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{16}},
		Source: ir.Mem(kernel.Bytes(variance))})
	x = s.node("BatchNormalization", []*ir.Value{x, s.weight("scale", 16), s.weight("shift", 16), s.weight("mean", 16), v})
	x = s.node("Relu", []*ir.Value{x})
	x = s.node("Reshape", []*ir.Value{x, s.ints(36, 16)})
	x = s.node("LayerNormalization", []*ir.Value{x, s.weight("gain", 16)})
	x = s.node("Relu", []*ir.Value{s.node("Gemm", []*ir.Value{x, s.weight("w", 16, 64), s.weight("c", 64)})})
	s.output("y", s.node("MatMul", []*ir.Value{x, s.weight("v", 64, 64)}), 36, 64)
	for _, v := range s.Consts() {
		if m, ok := v.Const.Source.(ir.Mem); ok && v.Const.DType == ir.Float {
			v.Const.Source = ir.Span{R: payload{bytes.NewReader(m), d}}
		}
	}
	return s.Model()
}

// computed runs a variant on a model on a disk. It returns the constants of the result, and the float weights restored
// from them.
func (v variant) computed(t *testing.T, e *ir.Eval, d *disk) (ts []*ir.Tensor, err error) {
	m := convolutional(t, d)
	r, err := pass.Run(context.Background(), m, e, pass.Environment{Workers: 1}, []pass.Options{v.step(t)})
	if err != nil {
		return nil, err
	}
	for g := range m.Graphs() {
		for _, c := range g.Consts() {
			ts = append(ts, c.Const)
		}
	}
	for _, row := range r.Rows {
		if row.Restore != nil {
			var parts []*ir.Tensor
			for _, p := range row.After {
				parts = append(parts, p.Tensor)
			}
			ts = append(ts, row.Restore(parts))
		}
	}
	return ts, nil
}

// readAll runs a variant on a disk that fails in one read, 0 for none, and returns the number of reads.
func (v variant) readAll(t *testing.T, fails int) (reads int, err error) {
	d, e := &disk{left: fails}, ir.NewEval(t.TempDir())
	defer e.Close()
	ts, err := v.computed(t, e, d)
	for _, c := range ts {
		_, failed := e.ReadAll(context.Background(), c)
		err = errors.Join(err, failed)
	}
	return fails - d.left, err
}

// errorVariants are all methods, and options with reads of their own.
func errorVariants() []variant {
	all := []variant{
		{WeightInt4{}.Method(), []string{"algo=gptq"}},
		{WeightInt4{}.Method(), []string{"algo=awq"}},
		{DynamicInt8{}.Method(), []string{"bias-correction"}},
		{Smooth{}.Method(), []string{"alpha=auto"}},
		{StaticInt8{}.Method(), []string{"activation-sqnr=0"}},
	}
	for _, m := range Methods() {
		var options []string
		if m.Name == "weight-int4" {
			options = []string{"search=mse"} // models that do not run on random inputs are no error in the default
		}
		all = append(all, variant{m, options})
	}
	return all
}

// A read of a weight that fails is an error of the run, whichever read of a method it is.
func TestReadErrorsEndRuns(t *testing.T) {
	for _, v := range errorVariants() {
		t.Run(v.String(), func(t *testing.T) {
			n, err := v.readAll(t, 0)
			if err != nil {
				t.Fatal(err)
			}
			var at []int
			for i := range 12 {
				at = append(at, 1+i*(n-1)/11)
			}
			for _, k := range slices.Compact(at) {
				if _, err := v.readAll(t, k); !errors.Is(err, errDisk) {
					t.Errorf("read %d of %d fails: %v", k, n, err)
				}
			}
		})
	}
}

// A write that fails is an error of the recipe.
func TestWriteErrorsEndRecipes(t *testing.T) {
	for _, v := range errorVariants() {
		e := ir.NewEval(t.TempDir())
		defer e.Close()
		ts, err := v.computed(t, e, &disk{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range ts {
			o, ok := c.Source.(ir.Output)
			if !ok {
				continue
			}
			n, err := write(e, o.Of, 0)
			if err != nil {
				t.Fatal(err)
			}
			for k := range n {
				if _, err := write(e, o.Of, k+1); !errors.Is(err, errDisk) {
					t.Errorf("%s: %s: write %d of %d fails: %v", v, o.Of.Name, k+1, n, err)
				}
			}
		}
	}
}

// write runs a recipe, writing to a disk that fails in one write, 0 for none, and returns the number of writes.
func write(e *ir.Eval, r *ir.Recipe, fails int) (writes int, err error) {
	d, out := &disk{left: fails}, make([]io.Writer, len(r.Out))
	for i := range out {
		out[i] = d
	}
	err = e.Run(context.Background(), r, out)
	return fails - d.left, err
}

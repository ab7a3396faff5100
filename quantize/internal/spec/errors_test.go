package spec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

var errDisk = errors.New("disk")

// A disk reads and writes, and fails in one operation.
type disk struct{ left int }

func (d *disk) operate() error {
	if d.left--; d.left == 0 {
		return errDisk
	}
	return nil
}

type brokenInput struct {
	*bytes.Reader
	*disk
}

func (r brokenInput) ReadAt(b []byte, off int64) (int, error) {
	if err := r.operate(); err != nil {
		return 0, err
	}
	return r.Reader.ReadAt(b, off)
}

type brokenOutput struct {
	*bytes.Buffer
	*disk
}

func (w brokenOutput) Write(b []byte) (int, error) {
	if err := w.operate(); err != nil {
		return 0, err
	}
	return w.Buffer.Write(b)
}

// try runs a recipe on a disk that fails in one operation, 0 for none, and returns the outputs and the number of
// operations.
func try(r *ir.Recipe, payloads [][]byte, fails int) (outputs [][]byte, operations int, err error) {
	d := &disk{left: fails}
	var in []io.ReaderAt
	for _, b := range payloads {
		in = append(in, brokenInput{bytes.NewReader(b), d})
	}
	buffers, out := make([]bytes.Buffer, len(r.Out)), make([]io.Writer, len(r.Out))
	for i := range out {
		out[i] = brokenOutput{&buffers[i], d}
	}
	err = r.Run(context.Background(), in, out)
	for i := range buffers {
		outputs = append(outputs, buffers[i].Bytes())
	}
	return outputs, fails - d.left, err
}

// Each failed read and write ends the quantization and the restoration of a weight with its error.
func TestErrorsOfDisks(t *testing.T) {
	all := map[string]Encoding{}
	for _, l := range layouts() {
		if l.Weight = quanttest.TensorOf(ir.Float, l.Shape, nil); l.isLarge() {
			continue
		}
		e := l.PerChannel
		e.ScaleShape = []int64{e.Layout.NumScales()}
		all["per channel, "+l.name] = &e
		all["float8, "+l.name] = &Float8Encoding{SmallFloat: Float8Types["e5m2"], Weight: e.Weight, Layout: e.Layout,
			ScaleShape: e.ScaleShape}
	}
	for name, b := range blockLayouts(160, 170, 16) {
		shape := []int64{b.Rows, b.Cols}
		all["blocks, "+name] = &Blockwise{Weight: quanttest.TensorOf(ir.Float, shape, nil), Shape: shape, Layout: b}
	}
	table := &ir.Value{Const: quanttest.TensorOf(ir.Float, []int64{100, 33}, nil)}
	for axis := range 2 {
		all[fmt.Sprintf("float4, axis %d", axis)] = NewFloat4(Float4Type, table, []int{1 - axis}, 32, true)
	}
	for name, e := range all {
		t.Run(name, func(t *testing.T) {
			r := e.Recipe()
			x := make([]float32, r.In[0].Elems())
			for i := range x {
				x[i] = float32(i%17) - 8
			}
			parts := eachFails(t, r, [][]byte{kernel.Bytes(x)})
			var stored []*ir.Tensor
			for i, b := range parts {
				stored = append(stored, &ir.Tensor{Spec: r.Out[i], Source: ir.Mem(b)})
			}
			eachFails(t, e.Restore(stored).Source.(ir.Output).Of, parts)
			if c, ok := e.(*Blockwise); ok {
				eachFails(t, restoreInParts(c), parts)
			}
		})
	}
}

// restoreInParts restores a weight that is larger than what is held of it.
func restoreInParts(c *Blockwise) *ir.Recipe {
	return &ir.Recipe{Name: "restore in parts", Out: []ir.Spec{c.Weight.Spec},
		Run: func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
			d := newBlockDequantizer(c, in)
			d.panelElems = c.Weight.Elems() / 3
			return d.run(ctx, &FloatWriter{W: out[0], Dt: ir.Float})
		}}
}

// eachFails runs a recipe once for each of its first and last operations, which fails, and returns the outputs of a run
// without failure.
func eachFails(t *testing.T, r *ir.Recipe, payloads [][]byte) [][]byte {
	t.Helper()
	outputs, n, err := try(r, payloads, 0)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= n; k++ {
		if k == 6 {
			k = max(k, n-5)
		}
		if _, _, err := try(r, payloads, k); !errors.Is(err, errDisk) {
			t.Errorf("%s: operation %d of %d fails: %v", r.Name, k, n, err)
		}
	}
	return outputs
}

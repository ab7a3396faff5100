package palette

import (
	"context"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// sharing are the indices and scales of a stored weight, for training of its codebooks.
func (st *stored) sharing() *pass.Sharing {
	sh := &pass.Sharing{Codebook: outCodebook, Block: st.Block,
		Indices: st.numbers(outIndices, ir.Int32, st.weight.Shape, st.writeIndices)}
	if st.Block > 0 {
		sh.Scales = st.numbers(outScales, ir.Float, []int64{ceilDiv(st.Elems, st.Block)}, st.writeScales)
	}
	return sh
}

// numbers is a lazy tensor of numbers that write makes from a part, those from first on.
func (st *stored) numbers(part int, dt ir.DType, shape []int64,
	write func(r io.ReaderAt, w io.Writer, first, n int64) error) *ir.Tensor {
	r := &ir.Recipe{Name: "numbers of palette", In: []*ir.Tensor{st.parts[part].Tensor},
		Out: []ir.Spec{{Name: st.of, DType: dt, Shape: shape}}, Work: 6 * st.chunk()}
	r.Run = func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error {
		elems, n := r.Out[0].Elems(), st.chunk()
		for first := int64(0); first < elems; first += n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := write(in[0], out[0], first, min(n, elems-first)); err != nil {
				return err
			}
		}
		return nil
	}
	return r.Derive()[0]
}

// writeIndices writes the positions of elements in the codebooks of all groups, one after the other.
func (e *encoding) writeIndices(r io.ReaderAt, w io.Writer, first, n int64) error {
	unit, _ := e.unit()
	indices, at := make([]byte, ceilDiv(n, unit*e.entry())*unit), make([]int32, n)
	if err := e.readIndices(r, indices, first/e.entry()); err != nil {
		return err
	}
	for i := int64(0); i < n; {
		g, end := e.group(first + i)
		for end = min(end-first, n); i < end; i++ {
			at[i] = int32(g*e.stored() + int64(indices[i/e.entry()])*e.entry() + i%e.entry())
		}
	}
	_, err := w.Write(kernel.Bytes(at))
	return err
}

func (e *encoding) writeScales(r io.ReaderAt, w io.Writer, first, n int64) error {
	stored, scales := make([]byte, n), make([]float32, n)
	if err := ir.ReadFull(r, stored, first); err != nil {
		return err
	}
	for i, b := range stored {
		scales[i] = scaleTable().of[b]
	}
	_, err := w.Write(kernel.Bytes(scales))
	return err
}

// restoreName names the computation of float weights of this layout.
func (e *encoding) restoreName() string { return fmt.Sprintf("restore palette %+v", *e.Layout) }

// derive returns the stored tensors. Those of a weight that was restored from tensors of the same layout, such as
// trained codebooks, are these tensors: k-means would find other ones.
func (e *encoding) derive() []*ir.Tensor {
	if o, ok := e.weight.Source.(ir.Output); ok && o.Of.Name == e.restoreName() {
		return o.Of.In[:len(e.specs(""))]
	}
	return e.Recipe().Derive()
}

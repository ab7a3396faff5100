package distill

import (
	"context"
	"errors"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A sharedWeight is a weight whose elements are entries of codebooks (weight sharing). Training updates the entries, by
// the sum of the gradients of their elements (Han et al., Deep Compression, ICLR 2016, section 3.3); which entry an
// element has does not change.
type sharedWeight struct {
	row             pass.Row
	indices, scales *ir.Array    // scales is nil without scales
	parts           []*ir.Tensor // in memory; the codebook is that before training
}

// tie makes the entries of codebooks the trained array of p. Without read, no data is read or created.
func (p *parameter) tie(ctx context.Context, e *ir.Eval, row pass.Row, o optimizer, read bool) error {
	sh := row.Sharing
	w := &sharedWeight{row: row, indices: withoutData(sh.Indices.Spec)}
	if sh.Scales != nil {
		w.scales = withoutData(sh.Scales.Spec)
	}
	codebook := row.After[sh.Codebook].Tensor
	p.shared = w
	p.setArray(withoutData(ir.Spec{DType: codebook.DType, Shape: []int64{codebook.Elems()}}), o) // entries may be vectors
	if !read {
		return nil
	}
	for _, part := range row.After {
		b, err := e.ReadAll(ctx, part.Tensor)
		if err != nil {
			return err
		}
		w.parts = append(w.parts, &ir.Tensor{Spec: part.Tensor.Spec, Source: ir.Mem(b)})
	}
	err := errors.Join(readTensor(ctx, e, codebook, p.array), readTensor(ctx, e, sh.Indices, w.indices))
	if w.scales != nil {
		err = errors.Join(err, readTensor(ctx, e, sh.Scales, w.scales))
	}
	return err
}

// tensor returns the weight with these entries.
func (w *sharedWeight) tensor(entries *ir.Array) *ir.Tensor {
	parts := slices.Clone(w.parts)
	parts[w.row.Sharing.Codebook] = &ir.Tensor{Spec: parts[w.row.Sharing.Codebook].Spec, Source: ir.Mem(entries.Data)}
	return w.row.Restore(parts)
}

// bytes is the memory of indices and scales.
func (w *sharedWeight) bytes() int64 {
	n := w.indices.Bytes()
	if w.scales != nil {
		n += w.scales.Bytes()
	}
	return n
}

package dataset

import "github.com/mcompress/mcompress/ir"

// tokenMask are the tokens of b that are no padding, by the attention masks in the data: 1 for a token, 0 for padding,
// float32 [samples, tokens]. It is nil without such a mask.
func (t *table) tokenMask(b *Batch, memory *buffers) *ir.Array {
	ids := b.Inputs[t.ids]
	if ids == nil || len(ids.Shape) < 2 {
		return nil
	}
	var all *ir.Array
	for _, in := range t.inputs {
		keep := flags(b.Inputs[in.Name], ids.Shape[0], ids.Shape[1])
		if in.role() != mask || keep == nil {
			continue
		}
		if all == nil {
			all = memory.array(ir.Float, ids.Shape[0], ids.Shape[1])
			copy(ir.View[float32](all), keep)
			continue
		}
		for i, x := range keep {
			ir.View[float32](all)[i] *= x
		}
	}
	return all
}

// flags are 1 for the tokens that a mask keeps, and 0 for others; nil for a mask that has not one element for each of
// count tokens of n samples. Integers other than 0 keep a token. Floats are factors, or are added to scores: then 0
// keeps a token, and the others are negative.
func flags(a *ir.Array, n, count int64) []float32 {
	read := reader[float64](a.DType)
	if read == nil || len(a.Shape) < 2 || a.Shape[0] != n || a.Shape[len(a.Shape)-1] != count || a.Elems() != n*count {
		return nil
	}
	row, out := make([]float64, count), make([]float32, n*count)
	for i := range n {
		read(row, a, i*count)
		added := a.DType.IsFloat()
		for _, x := range row {
			added = added && x <= 0 // a row of zeros alone keeps all
		}
		for k, x := range row {
			if (x != 0) != added {
				out[i*count+int64(k)] = 1
			}
		}
	}
	return out
}

// targets are those of the tokens of b from one position to another. Padding is neither a target nor a token before
// one.
func (t *table) targets(b *Batch, from, to int64, memory *buffers) [][]int64 {
	all := targets(b.Inputs[t.ids], from, to, memory)
	if b.Attended == nil {
		return all
	}
	count := b.Attended.Shape[1]
	for i, row := range all {
		keep := ir.View[float32](b.Attended)[int64(i)*count+from:]
		for k := range row {
			// Element k is the token whose successor is the target.
			if keep[k]*keep[k+1] == 0 {
				row[k] = -1
			}
		}
	}
	return all
}

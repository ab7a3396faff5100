package gemm

import "github.com/mcompress/mcompress/internal/kernel"

// An Epilogue is applied to a product while it is in the cache:
//
//	C = Activate(Alpha·product + Beta·Bias + Residual)
//
// Bias and Residual are absent if their Data is nil. A stride of 0 broadcasts: Col 0 for a value per row, Row 0 for a
// value per column, both for a scalar.
type Epilogue struct {
	Alpha    float32 // 0 means 1
	Beta     float32 // 0 means 1
	Bias     Matrix[float32]
	Residual Matrix[float32]

	// Activate modifies a part of a row in place, element by element: the parts depend on the number of workers.
	// Several workers call it concurrently.
	Activate func(row []float32)
}

func (e *Epilogue) alpha() float32 { return orOne(e.Alpha) }

func orOne(factor float32) float32 {
	if factor == 0 {
		return 1
	}
	return factor
}

func (e *Epilogue) check(s Shape) {
	if e.Bias.Data != nil {
		e.Bias.check("Bias", s.M, s.N)
	}
	if e.Residual.Data != nil {
		e.Residual.check("Residual", s.M, s.N)
	}
}

// Apply is applied to the rows i0 to i1-1 and the columns j0 to j1-1 of C, starting at c, for products that are
// computed elsewhere.
func (e *Epilogue) Apply(c []float32, stride, i0, i1, j0, j1 int) {
	e.apply(c, stride, span{i0, i1}, span{j0, j1})
}

// apply is applied to the given rows and columns of C, starting at c.
func (e *Epilogue) apply(c []float32, stride int, rows, cols span) {
	if e.alpha() == 1 && e.Bias.Data == nil && e.Residual.Data == nil && e.Activate == nil {
		return
	}
	const short = 64 // elements of a row, below which a call for each of them takes longer than reading all rows twice
	// The last step, so that it may follow the others of all rows.
	together := stride == cols.len() && stride < short
	for i := rows.from; i < rows.to; i++ {
		row := c[(i-rows.from)*stride:][:cols.len()]
		if a := e.alpha(); a != 1 {
			kernel.MulScalar(row, row, a)
		}
		if e.Bias.Data != nil {
			addRow(row, &e.Bias, i, cols.from, orOne(e.Beta))
		}
		if e.Residual.Data != nil {
			addRow(row, &e.Residual, i, cols.from, 1)
		}
		if e.Activate != nil && !together {
			e.Activate(row)
		}
	}
	if e.Activate != nil && together {
		e.Activate(c[:rows.len()*stride])
	}
}

// addRow adds a part of row i of m, times beta. The conversion prevents a fused multiply-add.
func addRow(row []float32, m *Matrix[float32], i, from int, beta float32) {
	switch x := m.Data[i*m.Row+from*m.Col:]; m.Col {
	case 0:
		kernel.AddScalar(row, row, float32(beta*x[0]))
	case 1:
		kernel.Axpy(row, beta, x[:len(row)])
	default:
		for j := range row {
			row[j] += float32(beta * x[j*m.Col])
		}
	}
}

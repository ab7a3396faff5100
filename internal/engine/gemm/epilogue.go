package gemm

import "github.com/mcompress/mcompress/internal/kernel"

// An Epilogue is what happens to a product while it is in the cache:
//
//	C = Activate(Alpha·product + Beta·Bias + Residual)
//
// Bias and Residual are absent where their Data is nil. A stride of 0 broadcasts: Col 0 for a
// value of each row, Row 0 for a value of each column, both for one value.
type Epilogue struct {
	Alpha    float32 // 0 stands for 1
	Beta     float32 // 0 stands for 1
	Bias     Matrix[float32]
	Residual Matrix[float32]

	// Activate changes a part of a row in place, element by element: the parts are not the same at
	// every number of workers. Several workers call it at once.
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

// apply changes the rows and columns of C that start at c.
func (e *Epilogue) apply(c []float32, stride int, rows, cols span) {
	for i := rows.from; i < rows.to; i++ {
		row := c[(i-rows.from)*stride:][:cols.len()]
		if a := e.alpha(); a != 1 {
			kernel.MulScalar(row, row, a)
		}
		addRow(row, e.Bias, i, cols.from, orOne(e.Beta))
		addRow(row, e.Residual, i, cols.from, 1)
		if e.Activate != nil {
			e.Activate(row)
		}
	}
}

// addRow adds a part of row i of m, times beta. The conversion forbids a fused multiply-add.
func addRow(row []float32, m Matrix[float32], i, from int, beta float32) {
	if m.Data == nil {
		return
	}
	switch x := m.from(i, from); m.Col {
	case 0:
		kernel.AddScalar(row, row, float32(beta*x.Data[0]))
	case 1:
		kernel.Axpy(row, beta, x.Data[:len(row)])
	default:
		for j := range row {
			row[j] += float32(beta * x.Data[j*m.Col])
		}
	}
}

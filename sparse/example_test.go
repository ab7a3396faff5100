package sparse_test

import (
	"context"
	"fmt"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/sparse"
)

// A weight in which one element of ten is not zero is stored in the form that is smallest in the file.
func Example() {
	weight := make([]float32, 100*100)
	for i := range weight {
		if i%10 == 3 {
			weight[i] = float32(i)
		}
	}
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 13}}
	g := m.Graph
	w := g.AddConst("w", &ir.Tensor{
		Spec:   ir.Spec{Name: "w", DType: ir.Float, Shape: []int64{100, 100}},
		Source: ir.Mem(kernel.Bytes(weight)),
	})
	x := g.NewValue("x")
	g.Inputs = append(g.Inputs, x)
	g.AddOutput(g.Insert(nil, "MatMul", []*ir.Value{x, w}))

	e := ir.NewEval("")
	defer e.Close()
	res, err := pass.Run(context.Background(), m, e, pass.Environment{Workers: 2}, []pass.Options{sparse.Auto{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s is stored as %s\n%s\n", res.Rows[0].Tensor, res.Rows[0].Form.Name, report.Why(res.Rows[0]))
	// Output:
	// w is stored as delta
	// sparsity: 90.0 % zeros: delta4 5,103 B; bitmask 5,764 B; csr 6,146 B; coo 8,238 B; dense 40,017 B; bsr16x16 43,638 B
}

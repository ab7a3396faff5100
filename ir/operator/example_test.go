package operator_test

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// The weight of a Gemm with transB is N × K: the output axis is the first one.
func ExampleOf() {
	n := &ir.Node{Op: ir.OpID{Type: "Gemm"}, Attrs: []*ir.Attr{ir.IntAttr("transB", 1)}}
	weight := operator.Of(n).Input(1)
	axes, _ := weight.Axes(n, 2)
	fmt.Println(weight.Role == operator.Matrix, axes.Output, axes.Reduction)

	quantized := operator.Lookup(ir.OpID{Domain: "com.microsoft", Type: "MatMulNBits"})
	of, _ := quantized.QuantizedBy(2)
	fmt.Println("input 2 has the scales of input", of.Index)
	// Output:
	// true [0] [1]
	// input 2 has the scales of input 1
}

package pass_test

import (
	"context"
	"fmt"
	"log"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A countLarge is the option struct of a method that marks large weights in the ledger.
type countLarge struct {
	pass.Selection
	Min int64 `flag:"min" default:"2" usage:"minimum number of 'elements' of a large weight"`
}

var count = &pass.Method{
	Name: "count", Doc: "counts large weights", Stage: pass.Prepare,
	New: func() pass.Options { return &countLarge{} },
}

func (countLarge) Method() *pass.Method { return count }

func (o countLarge) Run(_ context.Context, s *pass.Step) error {
	for _, v := range pass.Weights(s.Model) {
		if v.Const.Elems() >= o.Min {
			s.Ledger.Changed(v, v.Const, pass.Consumers(v), pass.Row{Form: pass.InPlace})
		}
	}
	return nil
}

// A method adds a row for each weight that it supports. The pipeline adds those of all other weights.
func Example() {
	recipe, err := pass.ParseRecipe([]*pass.Method{count}, []byte("steps: [{method: count, min: 4}]"))
	if err != nil {
		log.Fatal(err)
	}
	m := product(floats([]int64{2, 2}, 1, 2, 3, 4), floats([]int64{2, 1}, 1, 2))
	e := ir.NewEval("")
	defer e.Close()
	res, err := pass.Run(context.Background(), m, e, pass.Environment{Workers: 1}, recipe.Steps)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range res.Rows {
		fmt.Printf("%s %s %q\n", r.Tensor, r.Status, report.Why(r))
	}
	// Output:
	// w changed ""
	// w1 skipped "not supported: weight of MatMul: input 1"
}

package verification_test

import (
	"fmt"

	"github.com/mcompress/mcompress/report/verification"
)

// Gates apply to the worst output.
func Example() {
	number := func(x float64) *float64 { return &x }
	r := &verification.Result{Outputs: []verification.Output{
		{Name: "a", Errors: &verification.Errors{SQNR: number(40), Cosine: number(1), Elements: 10}},
		{Name: "b", Errors: &verification.Errors{SQNR: number(23.5), Cosine: number(0.998), Elements: 10}},
	}}
	for _, rule := range verification.Rules() {
		if v, why := rule.Value(r); why == "" {
			fmt.Println(rule.Name, v)
		}
	}
	// Output:
	// min-sqnr 23.5
	// min-cosine 0.998
}

package verify_test

import (
	"fmt"

	"github.com/mcompress/mcompress/verify"
)

// Gates look at the worst output.
func Example() {
	r := &verify.Result{Outputs: []verify.Output{
		{Name: "a", Errors: &verify.Errors{SQNR: 40, Cosine: 1}},
		{Name: "b", Errors: &verify.Errors{SQNR: 23.5, Cosine: 0.998}},
	}}
	for _, rule := range verify.Rules() {
		if v, ok := rule.Value(r); ok {
			fmt.Println(rule.Name, v)
		}
	}
	// Output:
	// min-sqnr 23.5
	// min-cosine 0.998
}

package distill_test

import (
	"flag"
	"fmt"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/pass"
)

// A step of a pipeline that trains for two epochs.
func Example() {
	step, err := pass.NewStep(distill.FineTune, func(fs *flag.FlagSet) error {
		if err := fs.Set("data", "digits.npz"); err != nil {
			return err
		}
		return fs.Set("epochs", "2")
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(step.Method().Name, step.Method().Stage)
	// Output: finetune train
}

package distill

import "github.com/mcompress/mcompress/pass"

// Methods are the methods of this package, in the order of help and documentation.
func Methods() []*pass.Method {
	return []*pass.Method{iterativePruning, movementPruning, distillation, fineTuning}
}

package pass

import (
	"context"

	"github.com/mcompress/mcompress/internal/memory"
	"github.com/mcompress/mcompress/ir"
)

// An Environment is the settings of a run, the same for all of its steps. The caller sets it; the zero value is valid.
type Environment struct {
	Workers int           // worker threads; below 2 for one
	Limits  memory.Limits // of a run of the model

	// Target is the runtimes and the CPU of the result; nil for the default.
	Target *Target

	// Precheck reads every weight before it is quantized, so that NaN, infinities and vanishing scales are
	// found before writing. Otherwise lazy tensors find them during evaluation and return *Unfit.
	Precheck bool
	// Unfit are weights, by name, that a method could not store although it had read them before (Precheck): no step
	// changes them.
	Unfit map[string]Reason
	// KeepIR keeps the IR version: new initializers of models below IR 4 are listed
	// among the graph inputs.
	KeepIR bool
	// DryRun reports that no model is written: methods skip long computations.
	DryRun bool
	// NoTrials forbids choices by running the model on random inputs: weights are, or were, trained, and the stored
	// values must follow the rule of fake quantization.
	NoTrials bool
	// Changed reports that an earlier step changed weights: Source is not the model that the step gets.
	Changed bool
	// Searched reports that a search chose the method of each weight, and the selections of the steps are its result.
	Searched bool

	// Source is the model as it was before the first step; nil if no step needs it.
	Source *ir.Model
	// Open opens another model, which stays open until the pipeline ends; nil where other models are not available.
	Open func(path string) (*ir.Model, error)
	// WriteFile writes a file besides the model, which is published with it; nil writes it at once.
	WriteFile func(path string, content []byte) error

	// Journal keeps the results of long computations across interruptions; nil for none.
	Journal ir.Journal

	// DedicatedProcess reports that the process does nothing else: a method may limit its memory to what the method plans.
	DedicatedProcess bool
	// MinimumMemory returns the least memory, in bytes, that the process has after the steps besides the program, such as
	// for verification, for steps with a memory budget; nil for nothing.
	MinimumMemory func(context.Context) (int64, error)
	// OnProgress is called after each step of training, and once more after its end; may be nil.
	OnProgress func(Progress)
}

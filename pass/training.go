package pass

// A Training is the history of a training step.
type Training struct {
	Method  string `json:"method"`
	Steps   int    `json:"steps"`
	Samples int    `json:"samples"` // training samples, counted once per use
	Kept    int    `json:"kept"`    // the step whose weights were kept; 0 if training did not improve the model

	Averaged bool            `json:"averaged,omitempty"` // the moving average of the weights was kept
	Chosen   []Setting       `json:"chosen,omitempty"`   // options that were not given
	Outputs  []TrainedOutput `json:"outputs,omitempty"`  // with a loss

	Loss               []Point `json:"loss"`             // mean since the last point
	ValidationLoss     []Point `json:"judged,omitempty"` // loss on the validation set
	ValidationAccuracy []Point `json:"agree,omitempty"`  // top-1 accuracy on the validation set
	Metric             string  `json:"metric,omitempty"` // that chose the checkpoint; empty for top-1 accuracy and loss
	ValidationMetric   []Point `json:"measured,omitempty"`

	Pruning []PruningStep `json:"pruning,omitempty"` // of pruning in steps, with training after each

	TrainingMemory
}

// A TrainedOutput is an output of the model that has a loss.
type TrainedOutput struct {
	Name    string `json:"name"`
	Loss    string `json:"loss"`              // function
	Teacher string `json:"teacher,omitempty"` // its output in the first teacher, if that has another name
}

// A PruningStep is one step of iterative pruning, with the training after it.
type PruningStep struct {
	Step   int     `json:"step"`   // of training, after which weights were pruned
	Amount float64 `json:"amount"` // fraction of the elements of pruned weights that are zero or removed
	// Kept is the training step whose weights were kept: Step if training did not improve the model.
	Kept int     `json:"kept"`
	LR   float64 `json:"lr,omitempty"` // learning rate

	// On the validation set, with the weights that were kept; absent without a validation set, classes or a metric.
	Loss     *float64 `json:"loss,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"` // top-1
	Metric   *float64 `json:"metric,omitempty"`
}

// A TrainingMemory is the planned memory of the process in training.
type TrainingMemory struct {
	Budget int64    `json:"budget,omitempty"` // of the process
	Memory []Size   `json:"memory"`           // by use
	Layout string   `json:"layout"`           // the memory savings in use
	Why    []string `json:"why,omitempty"`    // layouts that were tried, if a budget chose one

	Peak   []Size      `json:"peak"`             // at the step of the maximum, by kind; the sum is that of Memory
	Live   []LiveValue `json:"live,omitempty"`   // the largest values of the arena at the peak
	Trades []Trade     `json:"trades,omitempty"` // of each memory saving
}

// Total is the sum of the planned memory in bytes.
func (m *TrainingMemory) Total() (sum int64) {
	for _, s := range m.Memory {
		sum += s.Bytes
	}
	return sum
}

// A LiveValue is a value, or the scratch memory of a layer, at the peak.
type LiveValue struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Layer string `json:"layer,omitempty"`
	Bytes int64  `json:"bytes"`
}

// A Trade is the effect of one memory saving, compared with the same layout without it.
type Trade struct {
	Name  string  `json:"name"`
	Saved int64   `json:"saved"` // bytes of the total
	Work  float64 `json:"work"`  // additional multiply-adds, as a fraction of those of a step without recomputation
}

// A Point is a number at the end of a step.
type Point struct {
	Step int     `json:"step"`
	Y    float64 `json:"y"`
}

// A Size is a part of memory.
type Size struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// A Setting is an option whose value was chosen by the data and the model.
type Setting struct {
	Option string `json:"option"`
	Value  string `json:"value"`
	Why    string `json:"why"`
}

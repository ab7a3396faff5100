package pass

// A Training is the history of a training step.
type Training struct {
	Method  string `json:"method"`
	Steps   int    `json:"steps"`
	Samples int    `json:"samples"` // training samples, counted once per use
	Kept    int    `json:"kept"`    // the step whose weights were kept; 0 if training did not improve the model

	Averaged bool      `json:"averaged,omitempty"` // the moving average of the weights was kept
	Chosen   []Setting `json:"chosen,omitempty"`   // options that were not given

	Loss               []Point `json:"loss"`             // mean since the last point
	ValidationLoss     []Point `json:"judged,omitempty"` // loss on the validation set
	ValidationAccuracy []Point `json:"agree,omitempty"`  // top-1 accuracy on the validation set
	Metric             string  `json:"metric,omitempty"` // that chose the checkpoint; empty for top-1 accuracy and loss
	ValidationMetric   []Point `json:"measured,omitempty"`

	Memory []Size   `json:"memory"`        // planned memory of training
	Layout string   `json:"layout"`        // the memory savings in use
	Why    []string `json:"why,omitempty"` // layouts that were tried, if a budget chose one
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

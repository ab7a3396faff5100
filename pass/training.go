package pass

// A Training is what a step that trains did.
type Training struct {
	Method  string `json:"method"`
	Steps   int    `json:"steps"`
	Samples int    `json:"samples"` // that were learned from, each as often as it came
	Kept    int    `json:"kept"`    // the step whose weights were kept

	Loss               []Point `json:"loss"`             // mean since the last point
	ValidationLoss     []Point `json:"judged,omitempty"` // loss on samples kept apart
	ValidationAccuracy []Point `json:"agree,omitempty"`  // share of them whose largest score is the right one

	Memory []Size   `json:"memory"`        // what training took, as planned
	Layout string   `json:"layout"`        // what was done to save memory
	Why    []string `json:"why,omitempty"` // what was tried, where a budget chose
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

package pass

// A Training is what a step that trains did.
type Training struct {
	Method  string
	Steps   int
	Samples int // that were learned from, each as often as it came
	Kept    int // the step whose weights were kept

	Loss   []Point // mean since the last point
	Judged []Point // loss on samples kept apart
	Agree  []Point // share of them whose largest score is the right one

	Memory []Size   // what training took, as planned
	Layout string   // what was done to save memory
	Why    []string // what was tried, where a budget chose
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

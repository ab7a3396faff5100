package memoryplan

// A Measured is the memory of one run on random inputs. All sizes are bytes.
type Measured struct {
	Batch   int64  `json:"batch"`     // number of samples
	Weights int64  `json:"weights"`   // after prepacking
	Arena   int64  `json:"arena"`     // allocated for nodes
	Written int64  `json:"written"`   // bytes of the arena that nodes wrote: scratch is seldom used in full
	Peak    int64  `json:"peak"`      // maximum of live bytes in the arena at a step
	AtStep  int    `json:"peak_step"` // index of the peak in the Steps of the planned run
	AtNode  string `json:"peak_node"` // name of the node at the peak
	Heap    int64  `json:"heap"`      // maximum of bytes outside the arena, of dynamic nodes, at a step
	Outputs int64  `json:"outputs"`   // copied out of the arena
	Exact   bool   `json:"exact"`     // arena and peak equal the plan
}

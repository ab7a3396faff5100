package memoryplan

// A Run is the memory of one run, as planned. All sizes are bytes.
type Run struct {
	Batch   int64    `json:"batch"`         // number of samples; 1 where the batch axis is static
	Total   int64    `json:"total"`         // weights, inputs, outputs and arena
	Inputs  []Port   `json:"inputs"`        // without constants
	Outputs []Port   `json:"outputs"`       // copied out of the arena
	Arena   int64    `json:"arena"`         // activations and scratch
	Bound   int64    `json:"arena_bound"`   // lower bound of the arena
	Peak    int64    `json:"peak"`          // maximum of live bytes in the arena at a step
	Scratch int64    `json:"peak_scratch"`  // scratch among the bytes of the peak
	AtStep  int      `json:"peak_step"`     // index of the peak in Steps
	AtNode  string   `json:"peak_node"`     // name of the node at the peak; "" without live bytes
	Live    []Block  `json:"alive_at_peak"` // the largest first
	Dynamic []string `json:"dynamic"`       // names of nodes with data-dependent output sizes, which are not counted
	Steps   []Step   `json:"steps"`         // in the order of execution
}

// PortBytes is the bytes of inputs and outputs.
func (r *Run) PortBytes() int64 {
	n := int64(0)
	for _, ports := range [][]Port{r.Inputs, r.Outputs} {
		for _, p := range ports {
			n += p.Bytes
		}
	}
	return n
}

// A Port is an input or output of the model.
type Port struct {
	Name  string `json:"name"`
	Type  string `json:"type"`  // element type and shape, as float[1,1024]; "" where data-dependent
	Bytes int64  `json:"bytes"` // 0 where data-dependent
}

// A Block is memory in the arena, of a value or of a node's scratch.
type Block struct {
	Name  string `json:"name"`  // of the value, or of the node
	Kind  string `json:"kind"`  // "activation" or "scratch"
	Type  string `json:"type"`  // element type and shape; "" for scratch
	Bytes int64  `json:"bytes"` // size
	From  string `json:"from"`  // its producer
	To    string `json:"to"`    // its last consumer, or the node that reuses its memory in place
}

// A Step is a node, or several fused ones, and the live bytes while it runs.
type Step struct {
	Node    string `json:"node"`    // name
	Op      string `json:"op"`      // operator
	Bytes   int64  `json:"bytes"`   // live bytes in the arena
	Scratch int64  `json:"scratch"` // scratch among these
}

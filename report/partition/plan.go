package partition

// A Plan is a model partitioned into pipeline stages. Sizes are in bytes.
type Plan struct {
	By       string   `json:"by"` // balance criterion
	Stages   []*Stage `json:"stages"`
	Shared   []Shared `json:"shared_weights"`
	Parallel []Pair   `json:"tensor_parallel"` // weights to split within a stage, over one device per stage
	Unknown  int      `json:"unknown_values"`  // values of unknown size, which are not counted
	// of the slowest stage, where measured: a pipeline completes at most 1/Seconds batches per second
	Seconds float64 `json:"seconds,omitempty"`
}

// A Stage is the nodes of one device.
type Stage struct {
	Nodes   int     `json:"nodes"` // including constant-only nodes
	First   string  `json:"first_node"`
	Last    string  `json:"last_node"`
	Cost    int64   `json:"cost"`    // by the balance criterion
	Weights int64   `json:"weights"` // of constants, each once
	Peak    int64   `json:"peak"`    // maximum bytes of values live at a node, stage inputs included
	Inputs  []Port  `json:"inputs"`
	Outputs []Port  `json:"outputs"`
	Seconds float64 `json:"seconds,omitempty"` // of a run, where measured
	Handed  int64   `json:"handed_on"`         // bytes across the cut after the stage
	// the values across the cut: some may come from earlier stages, and skip the next one
	Crosses []Port `json:"crosses"`
}

// A Port is a value passed between stages.
type Port struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	From  int    `json:"from_stage"` // 0 for inputs of the model
}

// A Shared weight is in several stages.
type Shared struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	Stages []int  `json:"stages"` // from 1
}

// A Pair is the unit of tensor parallelism (Shoeybi et al., Megatron-LM, 2019, arXiv:1909.08053, section 3): products
// with column-parallel weights, followed by a product with a row-parallel weight. Between them devices do not
// communicate; the partial sums of the second are all-reduced. A feed-forward block has one column-parallel weight, or
// a gate and an up projection; attention has the query, key and value projections, split by heads.
type Pair struct {
	Columns   []Cut `json:"column_parallel"`
	Row       Cut   `json:"row_parallel"`
	AllReduce Port  `json:"all_reduce"` // the value that is summed over devices
	// equal parts that cannot be divided further: heads of keys and values, or columns
	Parts   int64  `json:"parts"`
	Refused string `json:"refused,omitempty"` // reason why the pair cannot be divided over the devices
}

// A Cut is the division of one product's weight.
type Cut struct {
	Node      string `json:"node"`
	Weight    string `json:"weight"`
	Type      string `json:"type"`
	Axis      int    `json:"axis"`
	Bytes     int64  `json:"bytes"`
	PerDevice int64  `json:"bytes_per_device"` // maximum over devices
	Even      bool   `json:"even"`             // equal on all devices
}

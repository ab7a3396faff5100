package partition

// A Manifest describes the files of a chain and the values passed between them.
type Manifest struct {
	Version int       `json:"version"` // of this schema: ManifestVersion
	Model   string    `json:"model"`
	Stages  []Member  `json:"stages"`
	Outputs []Arrival `json:"outputs"` // of the whole model
}

// A Member is one file of a chain.
type Member struct {
	File    string    `json:"file"`
	Parts   []Part    `json:"parts"` // this file, and its external data file if any
	Inputs  []Arrival `json:"inputs"`
	Outputs []string  `json:"outputs"`
}

// A Part is a file on disk.
type Part struct {
	Name   string `json:"name"`
	Size   int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// An Arrival is a value and the file that produces it, none for a model input.
type Arrival struct {
	Name string `json:"name"`
	From string `json:"from,omitempty"`
}

// A ShardManifest describes the files of tensor-parallel shards. Every rank runs its files of one segment after
// another; after a segment, the values of its reductions are summed over the ranks, and later segments read the sums.
type ShardManifest struct {
	Version  int             `json:"version"` // of this schema: ManifestVersion
	Model    string          `json:"model"`
	Ranks    int             `json:"ranks"`
	Segments []Segment       `json:"segments"`
	Outputs  []Result        `json:"outputs"` // of the whole model
	Divided  []DividedWeight `json:"divided_weights"`
	Weights  WeightBytes     `json:"weight_bytes"`
	Refused  []Refusal       `json:"refused,omitempty"` // pairs that every rank computes as a whole
}

// A Segment is the nodes between two reductions.
type Segment struct {
	Shards     []Shard     `json:"shards"` // of the ranks that have nodes in the segment
	Reductions []Reduction `json:"reductions,omitempty"`
}

// A Shard is the file of one rank in a segment.
type Shard struct {
	Rank    int       `json:"rank"` // from 0
	File    string    `json:"file"`
	Parts   []Part    `json:"parts"`
	Weights int64     `json:"weight_bytes"`
	Inputs  []Operand `json:"inputs"`
	Outputs []string  `json:"outputs"`
}

// An Operand is an input of a shard: of the model, from an earlier file of the same rank, or a sum.
type Operand struct {
	Name    string `json:"name"`
	From    string `json:"from,omitempty"`
	Reduced bool   `json:"reduced,omitempty"`
}

// A Reduction combines a value over all ranks (all-reduce).
type Reduction struct {
	Name      string `json:"name"`
	Operation string `json:"operation"` // sum
	Type      string `json:"type"`      // in the planned run
	Bytes     int64  `json:"bytes"`     // in the planned run, on each rank
}

// A Result is an output of the model: from one file, a sum, or parts of all ranks that are concatenated along an axis.
type Result struct {
	Name    string   `json:"name"`
	From    string   `json:"from,omitempty"`
	Reduced bool     `json:"reduced,omitempty"`
	Concat  []string `json:"concat,omitempty"` // files, by rank
	Axis    int      `json:"axis,omitempty"`
}

// A DividedWeight is a constant of which every rank has a part: of each block, which follow one another along the axis,
// the next piece.
type DividedWeight struct {
	Name    string  `json:"name"`
	Axis    int     `json:"axis"`
	Blocks  []int64 `json:"blocks"`
	Lengths []int64 `json:"lengths"` // of the axis, by rank
	Bytes   int64   `json:"bytes"`   // of the whole
}

// WeightBytes are sizes of constants: Stored = Model + Replicated + Added.
type WeightBytes struct {
	Model      int64 `json:"model"`      // of the whole model, each constant once
	Divided    int64 `json:"divided"`    // of those that are divided
	Replicated int64 `json:"replicated"` // of further copies
	Added      int64 `json:"added"`      // of sizes of the ranks, less those of the model that they replace
	Stored     int64 `json:"stored"`     // of all files
}

// A Refusal is a pair of weights that is not divided.
type Refusal struct {
	Weight string `json:"weight"` // of the row-parallel product
	Reason string `json:"reason"`
}

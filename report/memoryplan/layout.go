package memoryplan

// A Layout is the effect of channels last (NHWC) for the layout-sensitive operators, counted in bytes read and written.
type Layout struct {
	Sensitive int     `json:"sensitive_nodes"`        // number of nodes that would be channels last
	Nodes     int     `json:"nodes"`                  // number of nodes of the main graph
	Unknown   int     `json:"unknown_values"`         // number of values of data-dependent size, which are not counted
	Added     []Move  `json:"added_transposes"`       // that channels last requires
	Kept      []Move  `json:"kept_transposes"`        // of the model, needed in both layouts
	Vanished  []Move  `json:"vanished_transposes"`    // of the model, removed by channels last
	First     Patches `json:"patches_channels_first"` // of the model as it is
	Last      Patches `json:"patches_channels_last"`  // with channels last
	Saved     int64   `json:"saved"`                  // reduction of memory traffic in bytes; negative for an increase
}

// A Move is a Transpose of a value.
type Move struct {
	Value string `json:"value"` // name
	Bytes int64  `json:"bytes"` // read and written
}

// Patches are the im2col copies of convolutions.
type Patches struct {
	Bytes int64 `json:"bytes"` // read and written
	Runs  int64 `json:"runs"`  // number of contiguous pieces
}

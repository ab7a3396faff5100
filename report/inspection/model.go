package inspection

// A Model is the content of a model file. Its fields are in the order of the JSON form. All sizes are bytes.
type Model struct {
	Files     []File     `json:"files"`
	IRVersion int64      `json:"ir_version"`
	Opsets    []Opset    `json:"opsets"`
	Functions []string   `json:"functions"`
	Inputs    []Port     `json:"inputs"` // constants among them left out
	Outputs   []Port     `json:"outputs"`
	Operators []Operator `json:"operators"`
	DTypes    []DType    `json:"dtypes"`
	Tensors   []Tensor   `json:"tensors"`
	Runtimes  []Runtime  `json:"runtimes"` // memory of weights after loading
	Meta      []Entry    `json:"metadata"`
}

// A File is one file of the model, named relative to the model's folder.
type File struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// An Opset is one operator set that the model imports.
type Opset struct {
	Domain  string `json:"domain"`
	Version int64  `json:"version"`
}

// A Port is an input or output of the main graph; its type is in ONNX's text syntax, ""
// where it is not declared.
type Port struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// An Operator counts the nodes of one type in all graphs and functions, and the bytes
// of their constants.
type Operator struct {
	Op    string `json:"op"`
	Nodes int    `json:"nodes"`
	Bytes int64  `json:"constant_bytes"`
}

// A DType is the constants of one element type.
type DType struct {
	DType   string `json:"dtype"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// A Tensor is one initializer or Constant node.
type Tensor struct {
	Name  string  `json:"name"`
	Scope string  `json:"scope"` // its subgraph or function
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	Bytes int64   `json:"bytes"`
	// operator and node name, through Transpose, Reshape and other views
	Consumers   []string `json:"consumers"`
	Module      string   `json:"module,omitempty"`       // path of the module that it is part of
	DuplicateOf string   `json:"duplicate_of,omitempty"` // an earlier tensor of the same scope, type, shape and bytes
	Sparsity    *float64 `json:"sparsity,omitempty"`     // fraction of elements that are zero
}

// A Runtime is the bytes of the model's weights in the memory of a runtime that has loaded it: which forms stay sparse
// or quantized differs.
type Runtime struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// An Entry is one of metadata_props.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

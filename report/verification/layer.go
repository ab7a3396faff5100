package verification

// A Layer is a value of the same name in both graphs, with its error.
type Layer struct {
	Value  string `json:"value"`
	Node   string `json:"node"` // its producer in the first model
	Op     string `json:"op"`
	Module string `json:"module,omitempty"` // path of the module of the node
	Errors Errors `json:"errors"`
}

// A Break is the layer that adds most noise, relative to its signal, to that of its inputs.
type Break struct {
	Value  string   `json:"value"`
	Node   string   `json:"node"`
	Op     string   `json:"op"`
	Module string   `json:"module,omitempty"`  // path of the module of the node
	From   *float64 `json:"from_db,omitempty"` // the lowest SQNR of its inputs; absent where they are exact
	To     *float64 `json:"to_db,omitempty"`   // the SQNR of its output; absent where undefined
}

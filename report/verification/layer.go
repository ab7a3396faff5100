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

	Nodes []Neighbor `json:"nodes,omitempty"` // the node of the layer and about ten around it, in the order of execution
}

// A Neighbor is a node of the first model near the layer with the largest drop, with the value that it computes.
type Neighbor struct {
	Value  string  `json:"value"`
	Node   string  `json:"node"`
	Op     string  `json:"op"`
	Module string  `json:"module,omitempty"`
	Inputs []int   `json:"inputs"`           // positions in the list of the nodes whose outputs it reads
	Errors *Errors `json:"errors,omitempty"` // of the value; absent where it was not compared
}

// Worst reports whether n computes the value of b.
func (n *Neighbor) Worst(b *Break) bool { return n.Value == b.Value }

// SQNRText is the SQNR of the value; empty where it was not compared.
func (n *Neighbor) SQNRText() string {
	if n.Errors == nil {
		return ""
	}
	return n.Errors.Text()
}

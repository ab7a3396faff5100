package pass

// A Search is how the method of each weight was chosen by running the model.
type Search struct {
	Measure string        `json:"measure"` // of damage: "noise" or "divergence"
	Samples int           `json:"samples"` // that damage was measured on
	Layers  []Sensitivity `json:"layers"`  // the most sensitive ones first
	Trials  []Trial       `json:"trials"`  // combinations that were tried, in order
	Chosen  int           `json:"chosen"`  // the trial that was taken
}

// A Sensitivity is what each way to store a weight does to the outputs, all others being as they were.
type Sensitivity struct {
	Tensors   []string  `json:"tensors"` // several where one payload stands for all of them
	Consumers []string  `json:"consumers"`
	Bytes     int64     `json:"bytes"` // in the source
	Variants  []Variant `json:"variants"`
	Method    string    `json:"method,omitempty"` // that was chosen; empty for none
}

// A Variant is one way to store a weight. Damage is noise by signal of the outputs' mean, or the mean Kullback-Leibler divergence of scores.
type Variant struct {
	Method string  `json:"method"`
	Bytes  int64   `json:"bytes"`
	Damage float64 `json:"damage"`
}

// A Trial is a combination that was run. What the model does not tell is absent.
type Trial struct {
	What     string   `json:"what"`
	Bytes    int64    `json:"bytes"` // of the file
	SQNR     *float64 `json:"sqnr_db,omitempty"`
	Drop     *float64 `json:"accuracy_drop,omitempty"`
	Accepted bool     `json:"held"`
}

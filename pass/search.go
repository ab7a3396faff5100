package pass

import "fmt"

// A Search is the mixed-precision search of --auto.
type Search struct {
	Measure string        `json:"measure"` // of sensitivity: "noise" or "divergence"
	Samples int           `json:"samples"` // that sensitivity was measured on
	Layers  []Sensitivity `json:"layers"`  // most sensitive first
	Trials  []Trial       `json:"trials"`  // combinations tried, in order
	Chosen  int           `json:"chosen"`  // index of the chosen trial
	LeftOut []LeftOut     `json:"left_out,omitempty"`

	Data Data `json:"-"` // on which combinations were compared
}

// A Sensitivity is the sensitivity of the outputs to each candidate for one weight, with all others unchanged.
type Sensitivity struct {
	Tensors   []string  `json:"tensors"` // several if they share a payload
	Consumers []string  `json:"consumers"`
	Module    string    `json:"module,omitempty"` // path of the module that they are part of
	Bytes     int64     `json:"bytes"`            // in the source model
	Variants  []Variant `json:"variants"`
	Method    string    `json:"method,omitempty"` // the chosen one; empty for none
}

// A Variant is one candidate for a weight. Sensitivity is the mean noise-to-signal ratio of the outputs, or the mean
// Kullback-Leibler divergence of scores.
type Variant struct {
	Method      string  `json:"method"`
	Bytes       int64   `json:"bytes"`
	Sensitivity float64 `json:"damage"` // the maximum where Error is set
	// Error is why the candidate could not be measured for this weight: it was not chosen for it.
	Error string `json:"error,omitempty"`
}

// A LeftOut is a candidate that failed on the whole model, or the numbers of layers with each candidate in a
// combination that cannot be built: the search went on without it.
type LeftOut struct {
	Method string `json:"method"`
	Error  string `json:"error"`
}

// Failures describe the candidates, weights and combinations that the search left out, each with its error.
func (s *Search) Failures() []string {
	var list []string
	for _, l := range s.LeftOut {
		list = append(list, fmt.Sprintf("%s: %s", l.Method, l.Error))
	}
	for _, l := range s.Layers {
		for _, v := range l.Variants {
			if v.Error != "" {
				list = append(list, v.Error)
			}
		}
	}
	for _, t := range s.Trials {
		if t.Error != "" {
			list = append(list, fmt.Sprintf("%s: %s", t.What, t.Error))
		}
	}
	return list
}

// A Trial is a combination that was run. Metrics that the model does not have are absent, and all of them in a trial
// that ended early.
type Trial struct {
	What  string   `json:"what"`
	Bytes int64    `json:"bytes"` // of the file
	SQNR  *float64 `json:"sqnr_db,omitempty"`
	Drop  *float64 `json:"accuracy_drop,omitempty"`

	MetricDrop *float64 `json:"metric_drop,omitempty"` // of the chosen metric, in its unit

	Error    string `json:"error,omitempty"` // why it could not be run; it does not hold the gates then
	Accepted bool   `json:"held"`
	// Ended is the number of samples after which the gate on accuracy was missed whatever the others would give; 0 for a
	// complete trial.
	Ended int `json:"ended_after_samples,omitempty"`
}

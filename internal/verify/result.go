package verify

// A Result is what came of running models.
type Result struct {
	// Skipped says why nothing was run; the rest is empty then.
	Skipped string `json:"skipped,omitempty"`

	Backend  string    `json:"backend,omitempty"` // what ran the models
	Data     *Data     `json:"data,omitempty"`
	Outputs  []Output  `json:"outputs,omitempty"`
	Beyond   string    `json:"beyond,omitempty"`   // the first number beyond the tolerance, where outputs were recorded
	Accuracy *Accuracy `json:"accuracy,omitempty"` // where the samples have labels
	Breaks   *Break    `json:"breaks,omitempty"`   // where most of the error comes from
	Layers   []Layer   `json:"layers,omitempty"`   // in the order of the first model's nodes

	Activations *Activations `json:"activation_bytes,omitempty"`
}

// Data is what the models were run on. Made-up inputs follow from the seed.
type Data struct {
	Samples   int    `json:"samples"`
	Batch     int    `json:"batch"` // samples in a run
	Generated bool   `json:"generated,omitempty"`
	Seed      uint64 `json:"seed,omitempty"`
	Digest    string `json:"digest,omitempty"` // SHA-256 of the samples
}

// An Output is how one output of the second model differs from the first one's. Errors are
// of floats. Agreement is the share of equal whole numbers or texts, and of rows of scores with
// the same largest one.
type Output struct {
	Name      string   `json:"name"`
	Errors    *Errors  `json:"errors,omitempty"`
	Agreement *float64 `json:"agreement,omitempty"`
}

// Accuracy is the share of samples whose class is their label. Of one model alone there
// is no Before.
type Accuracy struct {
	Before *float64 `json:"before,omitempty"`
	After  float64  `json:"after"`

	Differ     int64       `json:"-"` // samples that one of both gets right and the other does not
	Likelihood *Likelihood `json:"-"` // nil without scores
}

// Activations are the most bytes of activations alive at a step of a run, of each model.
type Activations struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Worst is the output with the lowest SQNR, else the lowest agreement; nil if there is no output.
func (r *Result) Worst() *Output {
	var worst *Output
	for i := range r.Outputs {
		if o := &r.Outputs[i]; worst == nil || o.worse(worst) {
			worst = o
		}
	}
	return worst
}

func (o *Output) worse(p *Output) bool {
	switch {
	case o.Errors == nil || p.Errors == nil:
		if o.Errors == nil && p.Errors == nil {
			return o.Agreement != nil && (p.Agreement == nil || *o.Agreement < *p.Agreement)
		}
		return p.Errors == nil // numbers say more than shares
	}
	return o.Errors.DB() < p.Errors.DB()
}

package verification

import "math"

// A Result is a comparison of models.
type Result struct {
	// Skipped is why nothing was run; the rest is empty then.
	Skipped string `json:"skipped,omitempty"`

	Backend  string    `json:"backend,omitempty"` // that ran the models
	Data     *Data     `json:"data,omitempty"`
	Outputs  []Output  `json:"outputs,omitempty"`
	Beyond   string    `json:"beyond,omitempty"`   // the first number beyond the tolerance, where outputs were recorded
	Accuracy *Accuracy `json:"accuracy,omitempty"` // where the samples have labels
	// Unmeasured is why there is no accuracy although the samples have labels.
	Unmeasured string  `json:"accuracy_unmeasured,omitempty"`
	Metric     *Metric `json:"metric,omitempty"` // the chosen metric
	Breaks     *Break  `json:"breaks,omitempty"` // the layer with the largest drop in SQNR
	Layers     []Layer `json:"layers,omitempty"` // in the order of the first model's nodes

	Activations *Activations `json:"activation_bytes,omitempty"`
	// nil unless the embedded engine ran the models, with all weights in memory
	Weights *Weights `json:"weight_bytes,omitempty"`
	Latency *Latency `json:"latency,omitempty"` // nil unless a gate requires it
	Notes   []string `json:"notes,omitempty"`   // on bounds of the comparison
}

// Data describes the samples. Random inputs follow from the seed.
type Data struct {
	Name string `json:"name,omitempty"` // of the file or folder of the samples; empty for random inputs
	// of the file, or of the list of the files of a folder as sha256sum prints it
	SHA256    string `json:"sha256,omitempty"`
	Labels    *File  `json:"labels,omitempty"` // the file of the labels, where they are in another one
	Samples   int    `json:"samples"`          // on which the models were run
	Batch     int    `json:"batch"`            // samples in a run
	Generated bool   `json:"generated,omitempty"`
	Seed      uint64 `json:"seed,omitempty"`
	// what the same file, or a part of it, was also used for: calibration, search, training, validation; sorted
	Uses []string `json:"used_for,omitempty"`
}

// A File is a file that is read besides the samples.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256,omitempty"`
}

// An Output compares one output of the second model with the first one's. Errors are of floats. Agreement is the
// fraction of equal integers or strings, and of rows of scores with the same largest one (top-1). An output with Sizes
// has no Errors, and an Agreement only if it holds integers or strings.
type Output struct {
	Name      string   `json:"name"`
	Errors    *Errors  `json:"errors,omitempty"`
	Agreement *float64 `json:"agreement,omitempty"`
	Sizes     *Sizes   `json:"sizes,omitempty"`
}

// Accuracy is the fraction of samples whose class is their label. A single model
// has no Before.
type Accuracy struct {
	Before *float64 `json:"before,omitempty"`
	After  float64  `json:"after"`
	Drop   *Drop    `json:"drop,omitempty"` // nil of a single model

	Error      float64     `json:"-"` // standard error of the difference
	Likelihood *Likelihood `json:"-"` // nil without scores
}

// A Likelihood is the drop of the probabilities of the correct classes. It is more sensitive than accuracy, and on few
// samples a better estimate of the loss on others.
type Likelihood struct {
	Drop  float64 // mean
	Error float64 // standard error of Drop
}

// A Metric is a measure of both models on the samples, of which the report has the digest. A single model has no
// Before.
type Metric struct {
	Name           string   `json:"name"`
	Before         *float64 `json:"before,omitempty"` // absent where it is undefined
	After          *float64 `json:"after,omitempty"`  // absent where it is undefined
	HigherIsBetter bool     `json:"higher_is_better"`
	// of the difference, over samples; absent where it is unknown
	Error *float64 `json:"standard_error,omitempty"`

	Single bool `json:"-"` // of one model
}

// Drop is by how much the second model is worse, NaN where it is unknown.
func (m *Metric) Drop() float64 {
	switch {
	case m.Before == nil || m.After == nil:
		return math.NaN()
	case m.HigherIsBetter:
		return *m.Before - *m.After
	}
	return *m.After - *m.Before
}

// Latency is the minimum time of a run of each model, measured in turn in one process.
type Latency struct {
	Before float64 `json:"before_seconds"`
	After  float64 `json:"after_seconds"`
	Runs   int     `json:"runs"` // of each model
}

// Activations are the peak bytes of live activations of each model.
type Activations struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Weights are the bytes of weights of each model in the memory of the embedded engine, in its own forms: packed for
// kernels, sparse or quantized.
type Weights struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Worst is an output whose size differs, else that with the lowest SQNR, else the lowest agreement; nil if there is no
// output.
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
	case (o.Sizes == nil) != (p.Sizes == nil):
		return o.Sizes != nil // what cannot be compared element by element
	case o.Errors == nil || p.Errors == nil:
		if o.Errors == nil && p.Errors == nil {
			return o.Agreement != nil && (p.Agreement == nil || *o.Agreement < *p.Agreement)
		}
		return p.Errors == nil // errors rank before agreement
	}
	return o.Errors.DB() < p.Errors.DB()
}

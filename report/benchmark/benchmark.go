package benchmark

// A Measure is the measurement of one model on one backend with one batch size. Seconds are per run; bytes are resident
// memory of the process.
type Measure struct {
	Model    string   `json:"model"`
	Backend  string   `json:"backend"`
	Batch    int64    `json:"batch"`
	Workers  int      `json:"workers"`
	Runs     int      `json:"runs"`
	Load     float64  `json:"load_seconds"`
	First    float64  `json:"first_seconds"` // the first run after loading
	Min      float64  `json:"min_seconds"`
	Median   float64  `json:"median_seconds"`
	P90      float64  `json:"p90_seconds"`
	PerSec   float64  `json:"samples_per_second"`
	Prompt   float64  `json:"prompt_tokens_per_second,omitempty"` // of all sequences of the batch
	Decode   float64  `json:"decode_tokens_per_second,omitempty"` // likewise
	Cache    int64    `json:"cache_bytes,omitempty"`              // keys and values in the end
	Baseline int64    `json:"baseline_bytes"`                     // before the model was loaded
	Peak     int64    `json:"peak_bytes"`
	Arena    int64    `json:"arena_bytes,omitempty"`   // of the engine
	Weights  int64    `json:"weights_bytes,omitempty"` // in the engine's memory
	Needs    int64    `json:"needs_bytes,omitempty"`   // required memory, above the budget: not measured
	Halved   []int64  `json:"halved,omitempty"`        // batch sizes above the budget
	PlainGo  bool     `json:"plain_go,omitempty"`      // the engine has no kernels for this CPU
	Warnings []string `json:"warnings,omitempty"`      // of the weight cache
	// of several batch sizes: the smallest with at least 95 % of the most samples per second
	Knee bool `json:"knee,omitempty"`
}

// Over reports whether the run exceeds its budget.
func (m *Measure) Over() bool { return m.Needs > 0 }

// A TrainingStep is the measurement of training steps of one batch size.
type TrainingStep struct {
	Model   string  `json:"model"`
	Batch   int64   `json:"batch"`
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds"` // of the fastest step
	PerSec  float64 `json:"samples_per_second"`
	Peak    int64   `json:"peak_bytes"` // resident
	Knee    bool    `json:"knee,omitempty"`
}

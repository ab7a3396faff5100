package memoryplan

import "github.com/mcompress/mcompress/report/inspection"

// A Plan is the memory of a model. Its fields are in the order of the JSON form. All sizes are bytes.
type Plan struct {
	Weights Weights `json:"weights"` // as the model stores them
	// in a run: after constant folding and dead code elimination; nil if Unplanned is set
	Held *Weights `json:"held,omitempty"`
	ORT  int64    `json:"ort_bytes"` // weights once ONNX Runtime has loaded the model
	// why there are only weights: an unsupported operator, or an input without type
	Unplanned string    `json:"unplanned,omitempty"`
	Workers   int       `json:"workers"`            // number of worker threads, on which scratch memory depends
	Fixed     bool      `json:"batch_fixed"`        // the batch axis is static
	Runs      []*Run    `json:"runs"`               // one for each batch
	Budget    *Budget   `json:"budget,omitempty"`   // nil without a budget
	Layout    *Layout   `json:"layout,omitempty"`   // nil if it was not requested
	Measured  *Measured `json:"measured,omitempty"` // of the last run; nil if it was not requested
}

// Weights are constants by element type.
type Weights struct {
	Tensors int                `json:"tensors"` // number of constants
	Bytes   int64              `json:"bytes"`   // of all constants
	DTypes  []inspection.DType `json:"dtypes"`  // in the order of ONNX's enum
}

// A Budget is the largest batch whose total memory is within a number of bytes.
type Budget struct {
	Bytes int64 `json:"bytes"`          // the budget
	Batch int64 `json:"batch"`          // number of samples; 0 if none fits
	Total int64 `json:"total"`          // bytes of a run of that batch; of a batch of 1 if none fits
	Next  int64 `json:"next,omitempty"` // bytes of a run of the next batch; 0 if the batch axis is static or none fits
}

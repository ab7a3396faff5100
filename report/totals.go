package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Change is a figure of the source, or of the reference of the report, and of the result.
type Change struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Totals are figures of whole models.
type Totals struct {
	FileBytes Change  `json:"file_bytes"` // of all files of each model
	Ratio     float64 `json:"ratio"`      // file bytes before by file bytes after
	// elements of float constants of rank 1 or more, of quantized and sparse ones as dense weights; no scales, zero points
	// and settings
	Parameters Change `json:"parameters"`
	// payloads of constants and attributes, scales and indices included
	TensorBytes Change `json:"tensor_bytes"`
	// growth of a process of Runtime by loading the model, as estimated
	RuntimeBytes Change       `json:"runtime_bytes"`
	RuntimePeak  Change       `json:"runtime_peak_bytes"` // its peak while loading
	LoadedBytes  Change       `json:"loaded_bytes"`       // constants once Runtime has loaded the model
	Runtime      string       `json:"runtime"`            // the runtime that these are about
	DTypes       []DTypeBytes `json:"dtypes"`             // TensorBytes by element type, as packed in raw_data

	// weights once the embedded engine has loaded the model: sparse and packed ones stay so; nil where it did not run both
	// models
	Engine *Change `json:"engine_bytes,omitempty"`
	// doc strings and metadata of graphs, nodes, values and tensors, such as stack traces of exporters; nil where there
	// are none
	Metadata *Change   `json:"metadata_bytes,omitempty"`
	Sparsity *Sparsity `json:"sparsity,omitempty"` // nil where values were not read
	// peak bytes of live activations; nil where the models were not run
	Activations *Change `json:"activation_bytes,omitempty"`
}

// engineName is the embedded engine in text.
const engineName = "the embedded engine"

// DTypeBytes are the bytes of all tensors of one element type.
type DTypeBytes struct {
	DType string `json:"dtype"`
	Bytes Change `json:"bytes"`
}

// GraphBytes is the size of the source without payloads and metadata.
func (t *Totals) GraphBytes() int64 {
	n := t.FileBytes.Before - t.TensorBytes.Before
	if t.Metadata != nil {
		n -= t.Metadata.Before
	}
	return n
}

func totals(ctx context.Context, source, result Model, r *Report) (Totals, error) {
	before, _, err := sizes(ctx, source)
	if err != nil {
		return Totals{}, err
	}
	after, _, err := sizes(ctx, result)
	if err != nil {
		return Totals{}, err
	}
	heldBefore, err := LoadedBytes(ctx, source.IR)
	if err != nil {
		return Totals{}, err
	}
	heldAfter, err := LoadedBytes(ctx, result.IR)
	if err != nil {
		return Totals{}, err
	}
	residentBefore, err := estimate(ctx, source.IR, heldBefore)
	if err != nil {
		return Totals{}, err
	}
	residentAfter, err := estimate(ctx, result.IR, heldAfter)
	if err != nil {
		return Totals{}, err
	}
	var params Change
	if params.Before, err = countParameters(ctx, source.IR); err != nil {
		return Totals{}, err
	}
	if params.After, err = countParameters(ctx, result.IR); err != nil {
		return Totals{}, err
	}
	t := Totals{
		FileBytes:    Change{fileBytes(r.before()), fileBytes(r.Result)},
		Parameters:   params,
		TensorBytes:  Change{sum(before), sum(after)},
		RuntimeBytes: Change{residentBefore.loaded, residentAfter.loaded},
		RuntimePeak:  Change{residentBefore.peak, residentAfter.peak},
		LoadedBytes:  Change{heldBefore, heldAfter},
		Runtime:      pass.MeasuredRuntime,
		DTypes:       dtypes(before, after),
	}
	if source.Metadata+result.Metadata > 0 {
		t.Metadata = &Change{source.Metadata, result.Metadata}
	}
	t.Ratio = round(ratio(t.FileBytes), 4)
	return t, nil
}

// memoryNoted is the ratio from which a result that takes more runtime memory than the source is noted: estimates
// differ from measurements by more, but those of two forms of one model much less.
const memoryNoted = 1.05

// MemoryNote says that the result takes more memory than the source in Runtime, with the forms that Runtime expands; ""
// if it does not.
func (r *Report) MemoryNote() string {
	t := &r.Totals
	more := func(c Change) bool { return float64(c.After) > memoryNoted*float64(c.Before) }
	if !more(t.RuntimeBytes) && !more(t.RuntimePeak) {
		return ""
	}
	var forms []string
	for _, row := range r.Ledger {
		if row.After != nil && row.After.RuntimeBytes > row.After.Bytes && !slices.Contains(forms, row.Form) {
			forms = append(forms, row.Form)
		}
	}
	text := fmt.Sprintf(
		"%s is estimated to take more memory than for the source: %s after loading, %s at its peak",
		t.Runtime,
		times(float64(t.RuntimeBytes.After)/float64(t.RuntimeBytes.Before)),
		times(float64(t.RuntimePeak.After)/float64(t.RuntimePeak.Before)),
	)
	if len(forms) > 0 {
		text += ", as it expands " + strings.Join(forms, ", ")
	}
	return text
}

// ratio is 0 where the result has no bytes, as it does when its files are unknown.
func ratio(c Change) float64 {
	if c.After == 0 {
		return 0
	}
	return float64(c.Before) / float64(c.After)
}

func fileBytes(s Side) int64 {
	n := int64(0)
	for _, f := range s.Files {
		n += f.Bytes
	}
	return n
}

func sum(by map[ir.DType]int64) int64 {
	n := int64(0)
	for _, b := range by {
		n += b
	}
	return n
}

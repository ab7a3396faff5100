package verification

import "math"

// Errors compare numbers with those of the source, over all samples. As in the rest of
// a report, infinite and undefined values are absent: the SQNR of equal numbers, and all ratios
// where non-finite elements differ.
type Errors struct {
	Exact  bool     `json:"exact"`             // every element is equal
	SQNR   *float64 `json:"sqnr_db,omitempty"` // 10·log₁₀(Σ source² / Σ (source-result)²)
	Cosine *float64 `json:"cosine,omitempty"`  // of the angle between both as vectors
	Max    *float64 `json:"max_abs,omitempty"` // largest |source-result|

	Elements int64 `json:"elements"`
	// that are NaN or infinite in one model and not the same in the other
	NonFinite int64 `json:"non_finite,omitempty"`
	// that are NaN or infinite in the source: no ratio can count them
	SourceNonFinite int64 `json:"source_non_finite,omitempty"`

	Lost int64 `json:"lost,omitempty"` // that are NaN or infinite, and finite in the source
	// relative standard error of the noise-to-signal ratio over runs; 0 for a single run
	Deviation float64 `json:"-"`
}

// DB is the SQNR in decibels with its limits: +Inf where all elements are equal, -Inf without
// signal, NaN where no element could be compared.
func (e *Errors) DB() float64 {
	switch {
	case e.SQNR != nil:
		return *e.SQNR
	case e.NonFinite == 0 && e.Elements == e.SourceNonFinite:
		return math.NaN()
	case e.Exact:
		return math.Inf(1)
	}
	return math.Inf(-1)
}

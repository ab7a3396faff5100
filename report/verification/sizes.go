package verification

import (
	"fmt"
	"strings"
)

// Sizes describe an output whose size depends on the values of the inputs, such as the boxes that NonMaxSuppression
// leaves, and differs between the models in some runs. Its elements have no counterpart in the other model then, so
// that no error or agreement of all of them exists.
type Sizes struct {
	Runs  int    `json:"runs"`  // in which the size differs
	Of    int    `json:"of"`    // all runs
	First string `json:"first"` // the types in the first of them, as "float[1,75,64] → float[1,76,64]"
	// rows of the first model in the runs in which the size differs: positions on the axis that differs
	Before int64 `json:"before"`
	After  int64 `json:"after"`  // of the second model
	Scores bool  `json:"scores"` // its rows count for the agreement of both models

	// Common are the errors of floats in runs of equal size, and of the first rows in others, as many as both models
	// have. They are no measure of accuracy, as a row that is missing shifts those after it.
	Common *Errors `json:"common,omitempty"`
	Boxes  *Boxes  `json:"boxes,omitempty"` // nil unless the rows are boxes
}

// Boxes are the boxes of both models that overlap, in runs in which their number differs: each box of the first model
// with the free one of the second that overlaps it most, by at least IoU.
type Boxes struct {
	IoU     float64  `json:"iou"`                // minimum intersection over union
	Matched float64  `json:"matched"`            // fraction of the boxes of both models that have a counterpart
	Overlap *float64 `json:"mean_iou,omitempty"` // mean intersection over union of the counterparts; absent without any
}

// Text is the sizes and what they have in common, as "size depends on values: 75 rows → 76 rows (float[1,75,64] →
// float[1,76,64]), in 1 of 8 runs".
func (s *Sizes) Text() string {
	parts := []string{
		fmt.Sprintf(
			"size depends on values and differs: %d → %d rows in %d of %d runs (%s)",
			s.Before,
			s.After,
			s.Runs,
			s.Of,
			s.First,
		),
	}
	if b := s.Boxes; b != nil {
		text := fmt.Sprintf("boxes matched %s (IoU of at least %g", Percent(b.Matched), b.IoU)
		if b.Overlap != nil {
			text += fmt.Sprintf(", mean %.3f", *b.Overlap)
		}
		parts = append(parts, text+")")
	}
	if s.Common != nil {
		parts = append(parts, "first rows in common: "+s.Common.quantity())
	}
	return strings.Join(parts, " · ")
}

// noMeasure is why gates on the elements of o cannot be evaluated.
func (o *Output) noMeasure() string {
	text := fmt.Sprintf(
		"output %q: its size depends on values and differs between the models (%s)",
		o.Name,
		o.Sizes.First,
	)
	if o.Sizes.Boxes != nil {
		return text + "; metrics map and box-agreement measure detections"
	}
	return text + "; a metric of the task measures such outputs: --metric or --evaluator"
}

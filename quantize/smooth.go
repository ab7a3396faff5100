package quantize

import (
	"context"
	"fmt"
	"strconv"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/smoothing"
)

// Smooth divides channels of activations by factors and multiplies weights by them, so that both quantize well to 8
// bits (Xiao et al., SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models, ICML
// 2023).
type Smooth struct {
	pass.Selection
	// Alpha is the migration strength from 0 to 1, or auto.
	Alpha MigrationStrength `flag:"alpha" default:"0.5" usage:"migration 'strength' from 0 to 1, or auto: the one, for all products or for each group of them, with the highest output SQNR at 8 bits, if smoothing helps at all"`
	// NoInsertMul leaves products unsmoothed where no normalization, product or Mul before them can absorb the factors.
	NoInsertMul bool `flag:"insert-mul,not" usage:"insert a Mul where no normalization, product or Mul before can absorb the factors"`
	Calibration `defaults:"calibrate=8"`
}

var smoothMethod = &pass.Method{
	Name:    "smooth",
	Command: "quantize",
	Doc: "SmoothQuant: differences between channels migrate from activations into weights of MatMul and Gemm, " +
		"with calibration samples; weights are kept in float",
	Stage:      pass.Prepare,
	Repeats:    true, // a layer's weights change with the factors of its inputs and of its outputs
	Calibrates: true,
	New:        func() pass.Options { return &Smooth{} },
}

// Method describes the method.
func (Smooth) Method() *pass.Method { return smoothMethod }

// Check implements pass.Checker.
func (o Smooth) Check() error {
	if err := new(MigrationStrength).Set(string(o.Alpha)); err != nil {
		return pass.OptionErrorf("--alpha: %v", err)
	}
	return nil
}

// Run implements pass.Options.
func (o Smooth) Run(ctx context.Context, step *pass.Step) error {
	s, d := smoothing.Options{Alpha: 0.5, Search: o.Alpha == "auto", Insert: !o.NoInsertMul},
		calibrate.NewData(o.Calibration, true)
	if !s.Search {
		s.Alpha, _ = strconv.ParseFloat(string(o.Alpha), 64) // Check has parsed it
	}
	return smoothing.Smooth(ctx, step, &d, s)
}

// A MigrationStrength is a number from 0 to 1, or auto.
type MigrationStrength string

// String is the strength as Set parses it.
func (m *MigrationStrength) String() string { return string(*m) }

// Set parses a number from 0 to 1 or auto.
func (m *MigrationStrength) Set(s string) error {
	if x, err := strconv.ParseFloat(s, 64); s != "auto" && (err != nil || !(x >= 0 && x <= 1)) {
		return fmt.Errorf("%q is neither a number from 0 to 1 nor auto", s)
	}
	*m = MigrationStrength(s)
	return nil
}

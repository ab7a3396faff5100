package quantize

import (
	"context"
	"fmt"
	"strconv"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/palette"
)

// Palette stores weights as indices into a codebook (weight sharing); arithmetic is in float. The default is 16 entries
// for each tensor, and scales of blocks.
type Palette struct {
	pass.Selection
	// Entries is the number of entries of a codebook: 4, 16, 64 or 256.
	Entries string `flag:"entries" default:"16" enum:"4,16,64,256" usage:"'number' of entries of a codebook: 4, 16, 64 or 256 (2, 4, 6 or 8 bits for each weight)"`
	// Vector is the number of consecutive elements that share an index: 1, 2 or 4.
	Vector string `flag:"vector" default:"1" enum:"1,2,4" usage:"'number' of consecutive elements that share an index, an entry being a vector (product quantization): 1, 2 or 4"`
	// Granularity is the part of a weight that has a codebook of its own: per-tensor, per-group (of output channels) or
	// per-block.
	Granularity string `flag:"granularity" default:"per-tensor" enum:"per-tensor,per-group,per-block" usage:"'part' of a weight that has a codebook of its own: per-tensor, per-group (output channels) or per-block (consecutive elements, without scales)"`
	// Group is the number of output channels of a group.
	Group int `flag:"group" default:"16" usage:"'number' of output channels that share a codebook with --granularity per-group"`
	// Block is the number of elements that share a scale, or with per-block a codebook. The default is 8, 16 with 64
	// entries, 32 with 256, and 64 times the entries for codebooks.
	Block *int `flag:"block" usage:"'number' of elements that share an 8-bit scale, 0 for none (default 8; 16 with 64 entries, 32 with 256); with --granularity per-block, number of elements that share a codebook (default 64 times the entries)"`
	// Importance is the weight of elements in k-means: none, or samples.
	Importance string `flag:"importance" default:"none" enum:"none,samples" usage:"'weights' of squared errors in k-means: none, or samples (mean square of the input of each channel of MatMul, Gemm, Conv and ConvTranspose on calibration samples)"`
	Calibration
}

var paletteMethod = &pass.Method{
	Name:    "palette",
	Command: "quantize",
	Doc: "indices into a codebook (weight sharing by k-means) of MatMul, Gemm, Conv, ConvTranspose, LSTM, GRU, RNN " +
		"and embeddings, float arithmetic; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	New:     func() pass.Options { return &Palette{} },
}

// Method describes the method.
func (Palette) Method() *pass.Method { return paletteMethod }

// Check implements pass.Checker.
func (o Palette) Check() error {
	switch {
	case o.Group < 1:
		return pass.OptionErrorf("--group %d: must be positive", o.Group)
	case o.Block != nil && *o.Block < 0:
		return pass.OptionErrorf("--block %d: must not be negative", *o.Block)
	case o.Block != nil && *o.Block == 0 && o.Granularity == "per-block":
		return pass.OptionErrorf("--block 0: --granularity per-block requires a number of elements")
	}
	return nil
}

// Run implements pass.Options.
func (o Palette) Run(ctx context.Context, s *pass.Step) error {
	entries, err := strconv.Atoi(o.Entries)
	if err != nil {
		return fmt.Errorf("entries: %w", err)
	}
	vector, err := strconv.Atoi(o.Vector)
	if err != nil {
		return fmt.Errorf("vector: %w", err)
	}
	// At least eight vectors share a scale, where entries are vectors.
	block := max(map[int]int{4: 8, 16: 8, 64: 16, 256: 32}[entries], 8*vector*min(1, vector-1))
	switch {
	case o.Block != nil:
		block = *o.Block
	case o.Granularity == "per-block":
		block = 64 * entries
	}
	q := &palette.Quantizer{Entries: entries, Vector: vector, Block: int64(block)}
	if o.Importance == "samples" {
		data := calibrate.NewData(o.Calibration, true)
		q.Samples = &data
	}
	switch o.Granularity {
	case "per-group":
		q.Channels = int64(o.Group)
	case "per-block":
		q.Run, q.Block = int64(block), 0
	}
	return q.Apply(ctx, s)
}

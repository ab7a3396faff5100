package quantize

import (
	"flag"
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/internal/solve"
)

// blockOptions say how weights are rounded in blocks.
type blockOptions struct {
	bits         int
	block        blockSize // 0 for whole columns
	whole        bool      // columns, whatever the block
	weightType   string
	symmetric    bool
	search, algo string // empty where they were not given
	form         productForm
	gptq         gptq
}

// The codes by width: signed and unsigned, and the first opset whose DequantizeLinear has blocks of them.
var blockTypes = map[int]struct {
	signed, unsigned ir.DType
	opset            int64
}{
	2: {ir.Int2, ir.Uint2, 25},
	4: {ir.Int4, ir.Uint4, 21},
	8: {ir.Int8, ir.Uint8, 21},
}

// defaultBlock is how many rows share a scale unless it is said.
const defaultBlock = 32

// bind declares the options of methods that are about blocks alone.
func (o *blockOptions) bind(fs *flag.FlagSet) {
	signed, unsigned := blockTypes[o.bits].signed.String(), blockTypes[o.bits].unsigned.String()
	o.block, o.search, o.algo, o.weightType = defaultBlock, "mse", "rtn", unsigned
	o.form.name = standardForm
	o.bindShared(fs)
	fs.Var(choice{&o.symmetric, true}, "symmetric", "zero is in the middle of the codes")
	fs.Var(choice{&o.symmetric, false}, "asymmetric", "codes span each block's own range")
	fs.Var(word{&o.weightType, []string{signed, unsigned}}, "weight-type", fmt.Sprintf("`type` of the codes: %s or %s", signed, unsigned))
	fs.Var(choice{&o.whole, true}, "per-channel", "one scale for each output channel instead of blocks")
}

// bindShared declares the options that methods have which round whole channels, unless one of them is given.
func (o *blockOptions) bindShared(fs *flag.FlagSet) {
	fs.Var(&o.block, "block", "`rows` of a channel that share a scale: a power of two from 16 to 256")
	fs.Var(word{&o.search, []string{"mse", "span"}}, "search", "how scales are found, by `rule`: mse (least squared error, rounded so that errors of a channel do not add up) or span (the values' range, rounded to the nearest)")
	fs.Var(word{&o.algo, []string{"rtn", "hqq", "gptq", "awq"}}, "algo", "how codes are found, by `algorithm`: rtn (the nearest), hqq (half-quadratic zero points), or by samples: gptq (errors made up for), awq (inputs that are large count more)")
	o.form.bind(fs)
	o.gptq.bind(fs)
}

// asked reports whether one of the shared options was given.
func (o *blockOptions) asked() bool {
	return o.block > 0 || o.search != "" || o.algo != "" || o.form.name != ""
}

// unsigned reports whether codes are.
func (o *blockOptions) unsigned() bool { return strings.HasPrefix(o.weightType, "u") }

// size is the rows of a block, 0 for whole columns.
func (o *blockOptions) size() int {
	if o.whole {
		return 0
	}
	return int(o.block)
}

// rounder is what the options ask for.
func (o *blockOptions) rounder() rounder {
	by := solve.Balanced
	switch {
	case o.algo == "hqq":
		by = solve.HQQ
	case o.search == "span":
		by = solve.Nearest
	}
	return rounder{round: func(c *solve.Codes, w []float32) error {
		by(c, w)
		return nil
	}}
}

// blocking cuts a matrix into blocks of size rows, or whole columns. Codes that the file's types do not have are packed by
// hand, and unsigned.
func (o *blockOptions) blocking(rows, cols, size int64, packed bool) *blocking {
	if size == 0 || size > rows {
		size = max(1, rows)
	}
	b := &blocking{rows: rows, cols: cols, bits: o.bits, by: o.rounder()}
	b.grid = solve.Grid{High: 1<<o.bits - 1, Symmetric: o.symmetric, Block: int(size)}
	b.dtype = blockTypes[o.bits].unsigned
	switch half := int32(1) << (o.bits - 1); {
	case packed && o.bits < 8:
		b.dtype = ir.Uint8
	case !o.unsigned():
		b.grid.Low, b.grid.High, b.dtype = -half, half-1, blockTypes[o.bits].signed
	}
	return b
}

// inBlocks is o, where one of it was given, with what s says beside it.
func (s scheme) inBlocks(o *blockOptions) *blockOptions {
	if !o.asked() {
		return nil
	}
	b := *o
	b.weightType, b.symmetric = s.dtype().String(), s.symmetric
	return &b
}

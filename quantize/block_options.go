package quantize

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/quantize/solve"
)

// blockOptions say how weights are rounded in blocks.
type blockOptions struct {
	bits      int
	size      int // 0 for whole columns
	unsigned  bool
	symmetric bool
	search    bool
	algo      string
	gptq      gptq
	asked     bool // one of them was set
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
	o.size, o.search, o.algo, o.asked = defaultBlock, true, "rtn", true
	o.unsigned = true
	o.bindShared(fs)
	fs.Var(choice{&o.symmetric, true}, "symmetric", "zero is in the middle of the codes")
	fs.Var(choice{&o.symmetric, false}, "asymmetric", "codes span each block's own range (default)")
	names := []string{"int" + strconv.Itoa(o.bits), "uint" + strconv.Itoa(o.bits)}
	fs.Func("weight-type", fmt.Sprintf("`type` of the codes: %s (default %s)", strings.Join(names, " or "), names[1]), func(v string) error {
		if !slices.Contains(names, v) {
			return fmt.Errorf("%q is neither %s", v, strings.Join(names, " nor "))
		}
		o.unsigned = v == names[1]
		return nil
	})
	fs.BoolFunc("per-channel", "one scale for each output channel instead of blocks", func(string) error { o.size = 0; return nil })
}

// bindShared declares the options that methods have which round whole channels, unless one of them is set.
func (o *blockOptions) bindShared(fs *flag.FlagSet) {
	fs.Func("block", "`rows` of a channel that share a scale: a power of two from 16 to 256"+o.note(strconv.Itoa(o.size)), o.setSize)
	fs.Func("search", "how scales are found: mse (least squared error) or span (the values' range)"+o.note("mse"), func(v string) error {
		o.search, o.asked = v == "mse", true
		return oneOf(v, "mse", "span")
	})
	fs.Func("algo", "how codes are found: rtn (the nearest), hqq (half-quadratic zero points), or by samples: gptq (errors made up for), awq (inputs that are large count more)"+o.note("rtn"), func(v string) error {
		o.algo, o.asked = v, true
		return oneOf(v, "rtn", "hqq", "gptq", "awq")
	})
	o.gptq.bind(fs)
}

// note names a default, where there is one.
func (o *blockOptions) note(v string) string {
	if !o.asked {
		return ""
	}
	return " (default " + v + ")"
}

func (o *blockOptions) setSize(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 16 || n > 256 || n&(n-1) != 0 {
		return fmt.Errorf("%q is not a power of two from 16 to 256", v)
	}
	o.size, o.asked = n, true
	return nil
}

func oneOf(v string, names ...string) error {
	if slices.Contains(names, v) {
		return nil
	}
	return fmt.Errorf("%q is neither %s", v, strings.Join(names, " nor "))
}

// rounder is what the options ask for.
func (o *blockOptions) rounder() rounder {
	search, hqq := o.search, o.algo == "hqq"
	return rounder{round: func(c *solve.Codes, w []float32) error {
		if hqq {
			solve.HQQ(c, w)
			return nil
		}
		solve.Nearest(c, w, search)
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
	case !o.unsigned:
		b.grid.Low, b.grid.High, b.dtype = -half, half-1, blockTypes[o.bits].signed
	}
	return b
}

// inBlocks is o, where one of it was set, with what s says beside it.
func (s scheme) inBlocks(o *blockOptions) *blockOptions {
	if !o.asked {
		return nil
	}
	b := *o
	b.unsigned, b.symmetric = s.unsigned, s.symmetric
	return &b
}

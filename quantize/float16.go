package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Float16 stores float32 weights in half precision. A Cast in front of their readers keeps the
// arithmetic in float32, or, on request, the graph computes in half precision too.
//
// Storage alone is the default: it cannot overflow between weights, loads wherever Cast does, and is as fast as the
// float32 model, where runtimes without kernels for half precision put a Cast around every node of a converted graph.
var Float16 = &pass.Method{
	Name:    "float16",
	Command: "quantize",
	Doc:     "half-precision storage of float32 weights, float32 arithmetic unless asked otherwise; needs no data",
	Stage:   pass.Quantize,
	Shrinks: true,
	Bind:    func(fs *flag.FlagSet) func(*pass.Context) error { return bindNarrow(fs, &Binary16) },
}

var Binary16 = HalfType{
	DType:        ir.Float16,
	opset:        castByNumber,
	computeOpset: 7,
	stored:       pass.CastFloat16,
	computed:     pass.Float16,
	lookup:       pass.GatherFloat16,
	largest:      largestFloat16,
	overflow:     0x477ff000, // 65520, halfway to 2^16
	minNormal:    0x38800000, // 2^-14
	write:        kernel.F16FromF32,
}

// castByNumber is the first opset whose Cast names its type by number.
const castByNumber = 6

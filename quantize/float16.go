package quantize

import (
	"flag"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize/internal/float"
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
	Bind:    func(fs *flag.FlagSet) func(*pass.Context) error { return bindNarrow(fs, &float.Binary16) },
}

// Command fuzzcommands runs the commands of mcompress on mutated models: it changes real models as graphs (operators,
// edges, attributes, shapes, weights, names) and as bytes, and runs a random command with random options on each, under
// limits of memory and time.
//
//	go run ./internal/dev/fuzzcommands -time 1m
//	go run ./internal/dev/fuzzcommands -time 1m -generated -dir .bench/fuzz-models
//
// A finding is a crash, a signal, an exit code that is not documented, a run beyond a limit, an output that cannot be
// opened again or that a failed run left. Its model and command are kept in the folder of findings.
//
// With -generated the models are those of package modelgen, which are valid. Then a finding is also a refusal, a result
// that onnx.checker or ONNX Runtime refuses or whose outputs have another error than its report states, a size that is
// not as reported, a constant without its row, and a difference between runs that must agree: with other workers, and
// on an equivalent model. Findings are reduced to small models and grouped by kind, in folders.
//
// Case i depends on -seed and i only. The state is stored after each case: the next i, findings by kind, commands and
// operators. A run that was killed goes on where it was, with the cases that it had begun. Needs Linux, or another
// system with a shell whose ulimit bounds memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f := &fuzzer{}
	flag.StringVar(&f.dir, "dir", ".bench/fuzz-commands", "`folder` of the program, the state and the findings")
	flag.StringVar(&f.shared, "shared", "../shared", "`folder` of the shared models; their absence is reported")
	flag.Uint64Var(&f.seed, "seed", 1, "`seed` of the cases")
	flag.Int64Var(&f.memory, "memory", 8<<30, "virtual memory of a run in `bytes`")
	flag.DurationVar(&f.limit, "limit", 30*time.Second, "limit of the processor `time` of a run")
	flag.IntVar(&f.workers, "workers", runtime.NumCPU(), "concurrent `runs`")
	flag.BoolVar(&f.generated, "generated", false,
		"generate models instead of mutating them, and compare results with ONNX Runtime")
	flag.BoolVar(&f.cover, "cover", false, "measure the coverage of the code by all cases")
	flag.BoolVar(&f.built, "built", false, "run the programs that an earlier run has built in the folder, so that changes of the source do not matter")
	flag.IntVar(&f.start, "start", 0, "first `case`, where no state is stored")
	flag.IntVar(&f.end, "end", 0, "`case` before which to end, also if time is left; 0 for none")
	duration := flag.Duration("time", time.Minute, "`time` to run")
	only := flag.Int("case", -1, "run this `case` only, and print its command and output")
	flag.Parse()
	found, err := f.run(ctx, *duration, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzzcommands:", err)
		os.Exit(1)
	}
	if found > 0 {
		os.Exit(3)
	}
}

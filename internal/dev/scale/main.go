// Command scale writes models of a given number of nodes, initializers or layers, in graphs of several kinds: long
// chains, constant expressions, values of many consumers, nested subgraphs. They show whether the time of a command
// grows with the size of the graph only. The kind decoder is a language model in float16; its 48 layers are 28 GB.
//
//	go run ./internal/dev/scale -n 1000000 -kind nodes FILE
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

func main() {
	name := flag.String("kind", kinds[0].name, "`kind` of graph")
	n := flag.Int("n", 1_000_000, "`number` of nodes, initializers or layers")
	flag.Parse()
	if err := write(context.Background(), *name, *n, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// write saves the model of a kind.
func write(ctx context.Context, name string, n int, path string) error {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return fmt.Errorf("unknown kind %q", name)
	}
	eval := ir.NewEval("")
	defer eval.Close()
	_, err := onnx.Save(ctx, kinds[i].model(n), path, onnx.SaveOptions{Eval: eval})
	return err
}

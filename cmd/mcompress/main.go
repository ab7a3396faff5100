// Command mcompress compresses ONNX models by quantization, pruning and sparse storage, and accounts for
// every byte.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/mcompress/mcompress/registry/mlflow" // mlflow://
	_ "github.com/mcompress/mcompress/registry/oci"    // oci://
	_ "github.com/mcompress/mcompress/s3"              // object storage
)

func main() {
	abortOnFatalErrors()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	raiseMemoryLimit()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

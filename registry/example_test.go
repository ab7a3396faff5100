package registry_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/mcompress/mcompress/registry"
)

// A model is pushed to a folder, and its list of files is read from there. References of OCI registries and MLflow work
// the same way.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ref, err := registry.Parse("dir:" + dir)
	if err != nil {
		log.Fatal(err)
	}
	artifact, err := registry.Collect(ctx, "../fixtures/mlp.onnx", registry.CollectOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := registry.Push(ctx, ref, artifact, registry.Options{}); err != nil {
		log.Fatal(err)
	}
	stored, err := registry.List(ctx, ref, registry.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range stored.Files {
		fmt.Println(f.Role, f.Name, f.Size)
	}
	// Output: model mlp.onnx 547869
}

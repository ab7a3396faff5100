package mcompress_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const outsideProgram = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/ir"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(mcompress.ExitCode(err))
	}
}

// run is mcompress quantize --auto --min-sqnr 15 --data DATA -o OUT --push DEST IN, and a run of the result.
func run(ctx context.Context, in, out, data, dest string) error {
	res, err := mcompress.Request{
		Models: []string{in}, Output: out,
		Search: &mcompress.Search{},
		Data:   mcompress.Data{Path: data, Limit: 20},
		Gates:  []mcompress.Gate{mcompress.MinSQNR(15)},
		Push:   dest,
	}.Run(ctx)
	if err != nil {
		return err
	}
	s, err := mcompress.NewSession(ctx, res.Output, mcompress.SessionOptions{})
	if err != nil {
		return err
	}
	defer s.Close()
	results, err := s.Run(ctx, map[string]*ir.Array{s.Inputs()[0].Name: ir.NewArray(ir.Float, 1, 1, 20, 20)})
	if err != nil {
		return err
	}
	fmt.Println(res.Report.Tool.Name, res.Report.Totals.FileBytes.After < res.Report.Totals.FileBytes.Before,
		results[s.Outputs()[0].Name].Shape)
	return nil
}
`

// TestModuleOutsideOfTheTree builds a program in a module of its own that imports the library, and runs it.
func TestModuleOutsideOfTheTree(t *testing.T) {
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Requirements and checksums are those of the tree: nothing is downloaded.
	mod := strings.Replace(string(read(t, "go.mod")), "module github.com/mcompress/mcompress",
		"module example.com/outside", 1)
	write("go.mod", mod+"\nrequire github.com/mcompress/mcompress v0.0.0\n\nreplace github.com/mcompress/mcompress => "+
		root+"\n")
	write("go.sum", string(read(t, "go.sum")))
	write("main.go", outsideProgram)
	bin := filepath.Join(dir, "outside.exe")
	build := exec.Command("go", "build", "-mod=mod", "-o", bin, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(bin, filepath.Join(root, fixture("mlp.onnx")), filepath.Join(dir, "out.onnx"),
		filepath.Join(root, fixture("digits_test.npz")), "dir:"+filepath.Join(dir, "pushed")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := string(out), "mcompress true [1 10]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "pushed", "out.onnx")); err != nil {
		t.Error(err)
	}
}

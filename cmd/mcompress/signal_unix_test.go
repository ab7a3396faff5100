//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// TestSignalStopsTheRun sends a signal after increasing delays, until a run ends before it. Each interrupted run prints
// one line and exits with code 1, without an output, a report or temporary files; a run that ends has all of them.
func TestSignalStopsTheRun(t *testing.T) {
	t.Run("large weight", func(t *testing.T) {
		interrupted(t, wide(t, t.TempDir()), func(d time.Duration) time.Duration { return d*5/4 + time.Millisecond })
	})
	t.Run("many initializers", func(t *testing.T) {
		interrupted(t, many(t, t.TempDir()), func(d time.Duration) time.Duration { return 2*d + 100*time.Millisecond })
	})
}

// interrupted quantizes the model until a run ends; longer returns the delay of the next run.
func interrupted(t *testing.T, model string, longer func(time.Duration) time.Duration) {
	t.Helper()
	dir := t.TempDir()
	bin := program(t, dir)
	for delay := time.Millisecond; delay < 2*time.Minute; delay = longer(delay) {
		out := filepath.Join(dir, "out.onnx")
		var stderr bytes.Buffer
		c := exec.Command(bin, "quantize", model, "-o", out, "--report", "json", "-q")
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(delay)
		if err := c.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		err := c.Wait()
		parts, globErr := filepath.Glob(filepath.Join(dir, ".*"))
		if globErr != nil || len(parts) > 0 {
			t.Fatalf("after %v: temporary files left: %v %v", delay, parts, globErr)
		}
		written, globErr := filepath.Glob(filepath.Join(dir, "out.*"))
		if globErr != nil {
			t.Fatal(globErr)
		}
		if err == nil {
			if len(written) != 3 {
				t.Errorf("after %v: written: %v", delay, written)
			}
			return // done before the signal: longer delays test nothing more
		}
		if c.ProcessState.ExitCode() != exitIO {
			if c.ProcessState.ExitCode() < 0 {
				continue // killed before the program handles signals
			}
			t.Fatalf("after %v: exit code %d", delay, c.ProcessState.ExitCode())
		}
		if got, want := stderr.String(), "mcompress: interrupted\n"; got != want {
			t.Fatalf("after %v: stderr %q, want %q", delay, got, want)
		}
		if len(written) > 0 {
			t.Fatalf("after %v: interrupted, and yet %v", delay, written)
		}
	}
	t.Fatal("the program did not end in 2 minutes")
}

// program makes a link to this binary in dir by which it is the program.
func program(t *testing.T, dir string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "mcompress")
	if err := os.Symlink(exe, bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

// A run that cannot be interrupted, as it reads a pipe, ends after the grace period.
func TestGracePeriod(t *testing.T) {
	dir := t.TempDir()
	var stderr bytes.Buffer
	c := exec.Command(program(t, dir), "quantize", "--files-from", "-", "--grace", "200ms")
	c.Stderr = &stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // until the program handles signals
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); c.ProcessState.ExitCode() != exitIO {
		t.Errorf("%v, want exit code %d", err, exitIO)
	}
	if got, want := stderr.String(), "mcompress: interrupted; ended after the grace period of 200ms\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
}

// many writes a model with 10,000 initializers, in sums of 1,000.
func many(t *testing.T, dir string) string {
	t.Helper()
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 4}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	y := x
	for i := range 10 {
		in := []*ir.Value{y}
		for j := range 1000 {
			in = append(in, m.Graph.AddConst(fmt.Sprint("w", 1000*i+j),
				&ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4}}, Source: ir.Floats(1, 2, 3, 4)}))
		}
		y = m.Graph.Insert(nil, "Sum", in)
	}
	y.Type = x.Type
	m.Graph.AddOutput(y)
	path := filepath.Join(dir, "many.onnx")
	if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// wide writes a model with one weight of 32 MiB, large enough to be interrupted.
func wide(t *testing.T, dir string) string {
	t.Helper()
	m := ir.NewModel()
	m.IRVersion, m.Opsets = 8, []ir.Opset{{Version: 17}}
	x := m.Graph.AddValue("x")
	x.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 2048}}}
	m.Graph.Inputs = append(m.Graph.Inputs, x)
	payload := bytes.Repeat([]byte{0, 0, 128, 63, 0, 0, 0, 192}, 2048*2048) // 1 and -2
	w := m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{2048, 4096}},
		Source: ir.Mem(payload)})
	n := m.Graph.NewNode(ir.OpID{Type: "MatMul"}, []*ir.Value{x, w})
	y := m.Graph.AddValue("y")
	y.Type = &ir.Type{Elem: ir.Float, Shape: []ir.Dim{{N: 1}, {N: 4096}}}
	n.SetOutputs(y)
	m.Graph.Append(n)
	m.Graph.AddOutput(y)
	path := filepath.Join(dir, "wide.onnx")
	if _, err := onnx.Save(t.Context(), m, path, onnx.SaveOptions{Workers: 1, Memory: 1 << 20,
		Eval: ir.NewEval(dir)}); err != nil {
		t.Fatal(err)
	}
	return path
}

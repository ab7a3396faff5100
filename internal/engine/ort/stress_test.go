//go:build !noort

package ort_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/ir"
)

// Memory that C reads is neither collected nor reused meanwhile. The test runs in a process of its own, whose collector
// overwrites freed memory.
func TestRunWhileTheCollectorRuns(t *testing.T) {
	const variable = "ORT_STRESS"
	if os.Getenv(variable) == "" {
		library(t) // skips without a library
		cmd := exec.Command(os.Args[0], "-test.run=^TestRunWhileTheCollectorRuns$", "-test.v")
		cmd.Env = append(cmd.Environ(), variable+"=1", "GODEBUG=clobberfree=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	s := parsed(t, `g (float[N] x, string[N] s, seq(int64[N]) q, map(string, float) m) =>
		(float[N] y, string[N] t, seq(int64[N]) r, float[1,K] d) {
		y = Neg(x) t = StringConcat(s, s) r = Identity(q) d = ai.onnx.ml.DictVectorizer<string_vocabulary = ["a", "b"]>(m) }`)
	stop := churn()
	defer stop()
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 150 {
				if err := negated(s, int64(1+(37*w+i)%500)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// churn collects garbage, and allocates memory of many sizes, until it is stopped.
func churn() (stop func()) {
	done := make(chan struct{})
	var workers sync.WaitGroup
	for _, f := range []func(i int){
		func(int) { runtime.GC() },
		func(i int) { _ = append(make([]byte, 16<<(i%12)), fmt.Sprint(i)...) },
	} {
		workers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					f(i)
				}
			}
		})
	}
	return func() {
		close(done)
		workers.Wait()
	}
}

// negated runs the model on fresh inputs of n elements and checks every output.
func negated(s *ort.Session, n int64) error {
	x, text, items := make([]float32, n), make([]string, n), make([]*ir.Array, 3)
	wantX, wantText := make([]float32, n), make([]string, n)
	for i := range n {
		x[i], wantX[i] = float32(i+n), -float32(i+n)
		text[i] = fmt.Sprint("text ", i, n)
		wantText[i] = text[i] + text[i]
	}
	for i := range items {
		items[i] = ir.ArrayOf([]int64{n, int64(i)}, 2)
	}
	out, err := s.Run(context.Background(), map[string]*ir.Array{
		"x": ir.ArrayOf(x, n), "s": ir.TextOf(text, n),
		"q": {Kind: ir.Sequence, Items: items},
		"m": {Kind: ir.Map, Keys: ir.TextOf([]string{"b"}, 1),
			Items: []*ir.Array{ir.ArrayOf([]float32{float32(n)}, 1)}},
	}, nil)
	if err != nil {
		return err
	}
	good := slices.Equal(ir.View[float32](out["y"]), wantX) && slices.Equal(out["t"].Text, wantText) &&
		slices.Equal(ir.View[float32](out["d"]), []float32{0, float32(n)}) && len(out["r"].Items) == 3
	for i, item := range out["r"].Items {
		good = good && slices.Equal(ir.View[int64](item), []int64{n, int64(i)})
	}
	if !good {
		return fmt.Errorf("%d elements are wrong", n)
	}
	return nil
}

// endless is a loop that never ends in practice.
const endless = `g (float[N] x) => (float[N] y) {
	n = Constant<value = int64 {9223372036854775807}>() c = Constant<value = bool {1}>()
	y = Loop(n, c, x) <body = b (int64 i, bool go, float[N] a) => (bool on, float[N] z) {
		on = Identity(go) z = Neg(a) }> }`

func TestCancelledContextEndsRun(t *testing.T) {
	s := parsed(t, endless)
	in := map[string]*ir.Array{"x": ir.NewArray(ir.Float, 4)}
	why := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, why)
	defer cancel()
	for _, when := range []string{"while it runs", "before it starts"} {
		if _, err := s.Run(ctx, in, nil); !errors.Is(err, why) {
			t.Errorf("a context that ends %s: got %v, want %v", when, err, why)
		}
	}
}

func TestContextCancelledAfterRun(t *testing.T) {
	s := parsed(t, `g (float[N] x) => (float[N] y) { y = Neg(x) }`)
	in := map[string]*ir.Array{"x": ir.NewArray(ir.Float, 4)}
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel() // before, during or after the run
		if _, err := s.Run(ctx, in, nil); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
}

// Go panics if memory that is still pinned is collected.
func TestSessionWithoutClose(t *testing.T) {
	lib, path := library(t), written(t, `g (float[N] x) => (float[N] y) { y = Neg(x) }`)
	if _, err := ort.Open(lib, path, ort.Options{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond) // for finalizers
	}
}

func TestCloseWaitsForRuns(t *testing.T) {
	s := parsed(t, endless)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(ctx, map[string]*ir.Array{"x": ir.NewArray(ir.Float, 4)}, nil)
		ended <- err
	}()
	time.AfterFunc(20*time.Millisecond, cancel)
	time.Sleep(10 * time.Millisecond)
	s.Close()
	if err := <-ended; err == nil {
		t.Error("an endless loop ended")
	}
}

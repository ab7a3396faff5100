package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/mcompress/mcompress/internal/engine/gemm"
	"github.com/mcompress/mcompress/ir"
)

// gemmSizes are the squares that are multiplied, and how often at most each side does in turn.
var gemmSizes = []struct{ n, rounds int }{{512, 40}, {1024, 20}, {2048, 8}, {4096, 4}}

// gemm compares one core's products of float32 squares with numpy's OpenBLAS, which is
// held to the instructions that package kernel has.
func (b *bench) gemm(ctx context.Context) (string, error) {
	set, core := instructions()
	peer, err := b.openblas(ctx, core)
	if err != nil {
		return "", err
	}
	defer peer.close()
	var t strings.Builder
	fmt.Fprintf(&t, "## Float32 products of square matrices, one core, %s\n\n", set)
	fmt.Fprintf(&t, "GFLOP/s, best of interleaved runs. numpy's OpenBLAS uses its kernels for %s. B is packed in advance for constant\n", peer.core)
	t.WriteString("weights, and plain for activations.\n\n")
	t.WriteString("| n | OpenBLAS | B plain | ÷ OpenBLAS | B packed | ÷ OpenBLAS |\n|---:|---:|---:|---:|---:|---:|\n")
	for _, s := range gemmSizes {
		best, err := race(peer, s.n, s.rounds)
		if err != nil {
			return "", err
		}
		flop := 2 * float64(s.n) * float64(s.n) * float64(s.n) / 1e9
		fmt.Fprintf(&t, "| %d | %.1f | %.1f | %.2f | %.1f | %.2f |\n", s.n,
			flop/best.peer, flop/best.plain, best.peer/best.plain, flop/best.packed, best.peer/best.packed)
	}
	return t.String(), nil
}

// instructions are those of the kernels here, and OpenBLAS's core with the same.
func instructions() (set, core string) {
	switch {
	case runtime.GOARCH != "amd64":
		return runtime.GOARCH, ""
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasAVX512F:
		return "AVX-512", "SkylakeX"
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return "AVX2", "Haswell"
	}
	return "SSE2", "Prescott"
}

// paces are seconds of one product.
type paces struct{ peer, plain, packed float64 }

// race lets all multiply in turn, so that a busy second hits each of them.
func race(peer *openblas, n, rounds int) (paces, error) {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	s := gemm.Shape{M: n, N: n, K: n}
	plain := gemm.FloatProduct{A: gemm.Rows(gaussian(r, n*n), n), B: gemm.Rows(gaussian(r, n*n), n),
		C: make([]float32, n*n), Stride: n}
	packed := plain
	packed.Packed, packed.B = gemm.PackFloat(gemm.CallerPool{}, plain.B, n, n), gemm.Matrix[float32]{}
	work := ir.AlignedBytes(max(gemm.FloatWork(s, 1, 1, false), gemm.FloatWork(s, 1, 1, true)))
	product := func(p gemm.FloatProduct) func() (float64, error) {
		return func() (float64, error) {
			start := time.Now()
			gemm.Float(gemm.CallerPool{}, s, work, p)
			return time.Since(start).Seconds(), nil
		}
	}
	var best paces
	for round := range rounds + 1 { // the first warms up
		for _, side := range []struct {
			to  *float64
			run func() (float64, error)
		}{
			{&best.peer, func() (float64, error) { return peer.multiply(n) }},
			{&best.plain, product(plain)},
			{&best.packed, product(packed)},
		} {
			took, err := side.run()
			if err != nil {
				return best, err
			}
			if round <= 1 || took < *side.to {
				*side.to = took
			}
		}
	}
	return best, nil
}

func gaussian(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// openblas is a process of numpy that multiplies on request.
type openblas struct {
	talker
	core string // kernels that it reports
}

func (b *bench) openblas(ctx context.Context, core string) (*openblas, error) {
	cmd := exec.CommandContext(ctx, b.python, "-c", realScript, "multiply")
	cmd.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1")
	if core != "" {
		cmd.Env = append(cmd.Env, "OPENBLAS_CORETYPE="+core)
	}
	t, err := talk(cmd)
	if err != nil {
		return nil, err
	}
	p := &openblas{talker: t}
	if p.core, err = p.line(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// multiply returns the seconds of one product of squares.
func (p *openblas) multiply(n int) (float64, error) {
	text, err := p.ask(strconv.Itoa(n))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

package prune

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

var methods = []*pass.Method{l1Method, l1GlobalMethod, l1BlockMethod, l2Method, randomMethod, nmMethod}

// Recipes are read at any offset, also inside an element, by buffers at any address.
func TestViewsReadTheSameAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, m := range methods {
		for _, dt := range floatTypes {
			t.Run(fmt.Sprint(m.Name, " ", dt), func(t *testing.T) {
				b := newBench(t)
				values := make([]float64, 21*35)
				for i := range values {
					values[i] = float64(r.IntN(15) - 7)
				}
				w := b.weight("w", dt, []int64{21, 35}, values...)
				b.node("MatMul", []*ir.Value{nil, w})
				b.run(m)
				whole := b.bytes(w)
				in, err := b.step.Eval.Open(t.Context(), w.Const)
				if err != nil {
					t.Fatal(err)
				}
				for range 300 {
					from := r.IntN(len(whole))
					n := 1 + r.IntN(len(whole)-from)
					buf := make([]byte, n+1)[r.IntN(2):][:n]
					if got, err := in.ReadAt(buf, int64(from)); got != n || err != nil && err != io.EOF {
						t.Fatalf("%d bytes at %d: %d, %v", n, from, got, err)
					}
					if !bytes.Equal(buf, whole[from:from+n]) {
						t.Fatalf("%d bytes at %d differ from the whole", n, from)
					}
				}
			})
		}
	}
}

func TestMethodsAreTheSameForAnyWorkers(t *testing.T) {
	for _, m := range methods {
		var first []byte
		for _, workers := range []int{1, 2, 8} {
			b := newBench(t)
			b.step.Env.Workers = workers
			var ws []*ir.Value
			for i := range 6 {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				values := make([]float64, 300*(i+1)*40)
				for j := range values {
					values[j] = float64(r.IntN(200)) / 8
				}
				w := b.weight(fmt.Sprint("w", i), floatTypes[i%3], []int64{300, int64(i+1) * 40}, values...)
				b.node("MatMul", []*ir.Value{nil, w})
				ws = append(ws, w)
			}
			b.run(m)
			var all []byte
			for _, w := range ws {
				all = append(all, b.bytes(w)...)
			}
			if workers == 1 {
				first = all
			}
			if !bytes.Equal(all, first) {
				t.Errorf("%s: %d workers give other bytes", m.Name, workers)
			}
		}
	}
}

// Methods follow one another without intermediate copies, and the second sees what the
// first left.
func TestMethodsChain(t *testing.T) {
	b := newBench(t)
	w := b.weight("w", ir.Float, []int64{8, 1}, 1, 2, 3, 4, 5, 6, 7, 8)
	b.node("MatMul", []*ir.Value{nil, w})
	b.run(nmMethod, "pattern", "1:2")
	rows := b.run(l1Method, "amount", "0.75")
	if got, want := fmt.Sprint(b.values(w)), "[0 0 0 0 0 6 0 8]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r := rows[len(rows)-1]; r.Restore([]*ir.Tensor{w.Const}) != w.Const || r.Form != pass.InPlace {
		t.Errorf("row %+v", r)
	}
}

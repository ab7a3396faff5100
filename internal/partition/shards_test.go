package partition_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/engine/ort"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// followShards runs shards by their manifest.
func followShards(ctx context.Context, dir string, m *partition.ShardManifest, in map[string]*ir.Array, run runner) (map[string]*ir.Array, error) {
	made := map[string]map[string]*ir.Array{"": in}
	sums := map[string]*ir.Array{}
	for _, seg := range m.Segments {
		for _, s := range seg.Shards {
			given := map[string]*ir.Array{}
			for _, o := range s.Inputs {
				if given[o.Name] = made[o.From][o.Name]; o.Reduced {
					given[o.Name] = sums[o.Name]
				}
			}
			out, err := run(ctx, filepath.Join(dir, s.File), given)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.File, err)
			}
			made[s.File] = out
		}
		for _, r := range seg.Reductions {
			for _, s := range seg.Shards {
				sums[r.Name] = added(sums[r.Name], made[s.File][r.Name])
			}
		}
	}
	outs := map[string]*ir.Array{}
	for _, o := range m.Outputs {
		switch {
		case o.Reduced:
			outs[o.Name] = sums[o.Name]
		case o.Concat != nil:
			var parts []*ir.Array
			for _, file := range o.Concat {
				parts = append(parts, made[file][o.Name])
			}
			outs[o.Name] = concatenated(parts, o.Axis)
		default:
			outs[o.Name] = made[o.From][o.Name]
		}
	}
	return outs, nil
}

func numbers(a *ir.Array) []float64 {
	var list []float64
	for i := 0; i < len(a.Data); i += int(a.DType.Bits() / 8) {
		switch a.DType {
		case ir.Float16:
			list = append(list, float64(float16.Frombits(binary.LittleEndian.Uint16(a.Data[i:])).Float32()))
		case ir.Float:
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[i:]))))
		default:
			list = append(list, float64(a.Data[i]))
		}
	}
	return list
}

func added(sum, a *ir.Array) *ir.Array {
	if sum == nil {
		return a
	}
	out, x, y := ir.NewArray(a.DType, a.Shape...), numbers(sum), numbers(a)
	for i := range x {
		if a.DType == ir.Float16 {
			binary.LittleEndian.PutUint16(out.Data[2*i:], float16.Fromfloat32(float32(x[i]+y[i])).Bits())
		} else {
			binary.LittleEndian.PutUint32(out.Data[4*i:], math.Float32bits(float32(x[i]+y[i])))
		}
	}
	return out
}

func concatenated(parts []*ir.Array, axis int) *ir.Array {
	shape := append([]int64(nil), parts[0].Shape...)
	rows := ir.Spec{Shape: shape[:axis]}.Elems()
	shape[axis] = 0
	for _, p := range parts {
		shape[axis] += p.Shape[axis]
	}
	out := ir.NewArray(parts[0].DType, shape...)
	out.Data = out.Data[:0]
	for r := range rows {
		for _, p := range parts {
			n := int64(len(p.Data)) / max(1, rows)
			out.Data = append(out.Data, p.Data[r*n:(r+1)*n]...)
		}
	}
	return out
}

// close32 reports outputs that differ by more than rounding errors of sums in another order.
func almost(got, want map[string]*ir.Array) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if g == nil || g.String() != w.String() {
			return fmt.Errorf("output %q is %v, want %v", name, g, w)
		}
		if bytes.Equal(g.Data, w.Data) {
			continue
		}
		tolerance := map[ir.DType]float64{ir.Float: 2e-5, ir.Float16: 8. / 1024}[w.DType]
		var most, off float64
		x, y := numbers(g), numbers(w)
		for i := range y {
			most, off = max(most, math.Abs(y[i])), max(off, math.Abs(x[i]-y[i]))
		}
		if off > tolerance*max(most, 1e-3) || math.IsNaN(off) {
			return fmt.Errorf("output %q differs by %g, of at most %g", name, off, most)
		}
	}
	return nil
}

// Shards combined by the manifest compute the outputs of the whole model up to the order of sums; onnx.checker accepts them.
func TestShardsComputeTheModel(t *testing.T) {
	w := conform.Start(t)
	lib, err := ort.Load(conform.ORTLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	divided := 0
	for _, path := range append(conform.Fixtures(t), conform.QuickModels(t)...) {
		for _, ranks := range []int{2, 3, 4} {
			dir := t.TempDir()
			written, err := partition.WriteShards(t.Context(), path, dir, ranks, save())
			if err != nil {
				if !strings.Contains(err.Error(), "cannot be divided") {
					t.Errorf("%s: %v", label(path), err)
				}
				continue
			}
			divided++
			t.Run(fmt.Sprintf("%s/%d", label(path), ranks), func(t *testing.T) {
				f, err := onnx.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				full := w.Check(path, true) == nil
				for _, seg := range written.Shards.Segments {
					for _, s := range seg.Shards {
						if err := w.Check(filepath.Join(dir, s.File), full); err != nil {
							t.Errorf("%s, full check %t: %v", s.File, full, err)
						}
					}
				}
				in := sample(t, f.Model.Graph)
				for name, run := range map[string]runner{"engine": embedded, "ONNX Runtime": unoptimised(lib)} {
					want, err := run(t.Context(), path, in)
					if err != nil {
						t.Errorf("%s does not run the whole: %v", name, err)
						continue
					}
					got, err := followShards(t.Context(), dir, written.Shards, in, run)
					if err == nil {
						err = almost(got, want)
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
	if divided < 60 {
		t.Errorf("%d models were divided", divided)
	}
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Operators return errors and do not panic on any input. Each row of the table gets random inputs and attributes that
// fit together to some degree.
func TestOperatorsDoNotPanic(t *testing.T) {
	pool := op.NewPool(2)
	defer pool.Close()
	seeds := uint64(500)
	if testing.Short() {
		seeds = 50
	}
	for key, rows := range table() {
		t.Run(key.domain+"."+key.typ, func(t *testing.T) {
			for _, row := range rows {
				for seed := range seeds {
					if err := runRandom(row, rand.New(rand.NewPCG(seed, uint64(row.Since))), pool); err != nil {
						t.Fatalf("since %d, seed %d: %v", row.Since, seed, err)
					}
				}
			}
		})
	}
}

func FuzzOperators(f *testing.F) {
	pool := op.NewPool(2)
	f.Fuzz(func(t *testing.T, which uint16, seed uint64) {
		keys := make([]opKey, 0, len(table()))
		for k := range table() {
			keys = append(keys, k)
		}
		sortKeys(keys)
		rows := table()[keys[int(which)%len(keys)]]
		row := rows[int(seed%uint64(len(rows)))]
		if err := runRandom(row, rand.New(rand.NewPCG(seed, 1)), pool); err != nil {
			t.Fatalf("%s.%s since %d: %v", row.Domain, row.Type, row.Since, err)
		}
	})
}

// runRandom runs a row once on random inputs; only a panic is an error.
func runRandom(row *op.Op, rng *rand.Rand, pool *op.Pool) (err error) {
	s := &step{op: row}
	var in []*ir.Array
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v on %s", v, describe(s, in))
		}
	}()
	if row.Run == nil && !row.View {
		return nil // run by the engine itself
	}
	attrs, arrays := attributes(rng)
	version := row.Since + rng.Int64N(20)
	s.Node = op.NewNode(ir.OpID{Domain: row.Domain, Type: row.Type}, version, attrs, arrays)
	in = inputs(rng)
	s.NumIn = len(in)
	for k := range 1 + rng.IntN(4) {
		s.out = append(s.out, k)
		s.Consumed = append(s.Consumed, true)
	}
	if row.Shape != nil {
		if err := small(s, in); err != nil {
			return nil
		}
	}
	if row.Prepare != nil {
		constant := make([]*ir.Array, len(in))
		copy(constant[min(1, len(in)):], in[min(1, len(in)):])
		if p, err := row.Prepare(s.Node, constant, pool); err == nil && p != nil {
			s.State = p.State
			s.Const = make([]bool, len(in))
			for i := range constant {
				s.Const[i] = constant[i] != nil
			}
		}
	}
	_, err = runAlone(s, op.Call{Ctx: context.Background(), In: in, Pool: pool})
	if b := (*ir.Bug)(nil); errors.As(err, &b) {
		return fmt.Errorf("%v on %s\n%s", b, describe(s, in), b.Stack)
	}
	return nil
}

// small computes shapes without data first, as a plan does, and rejects what is too large to run.
func small(s *step, in []*ir.Array) error {
	if _, err := s.op.Shape(s.Node, unknown(in)); err != nil && err != op.ErrUnknown {
		return err
	}
	specs, err := s.op.Shape(s.Node, in)
	for _, spec := range specs {
		if err == nil {
			err = spec.Valid()
		}
		if err == nil && (spec.Elems() > 1<<20 || !spec.DType.Known()) {
			err = fmt.Errorf("output %s", spec)
		}
	}
	return err
}

func describe(s *step, in []*ir.Array) string {
	text := ""
	for name, a := range s.Attrs() {
		text += fmt.Sprintf(" %s=%v%v%v%q", name, a.I, a.Ints, a.F, a.S)
	}
	return fmt.Sprintf("%v%s, %d outputs", in, text, len(s.out))
}

// inputs are up to six arrays. Their shapes are often related, like those of real nodes.
func inputs(rng *rand.Rand) []*ir.Array {
	base := dims(rng)
	types := []ir.DType{ir.Float, ir.Float, ir.Float, ir.Int64, ir.Int32, ir.Uint8, ir.Int8, ir.Bool, ir.Double,
		ir.Float16, ir.BFloat16, ir.String, ir.Int4, ir.Uint16}
	dt := types[rng.IntN(len(types))]
	var in []*ir.Array
	for range rng.IntN(7) {
		shape := base
		if rng.IntN(3) == 0 {
			shape = dims(rng)
		}
		elem := dt
		if rng.IntN(3) == 0 {
			elem = types[rng.IntN(len(types))]
		}
		switch rng.IntN(12) {
		case 0:
			in = append(in, nil)
		case 1:
			in = append(in, &ir.Array{Kind: ir.Sequence, Items: []*ir.Array{filled(rng, elem, shape)}})
		case 2:
			in = append(in, &ir.Array{Kind: ir.None})
		case 3, 4:
			in = append(in, filled(rng, ir.Int64, []int64{int64(rng.IntN(5))}))
		default:
			in = append(in, filled(rng, elem, shape))
		}
	}
	return in
}

func dims(rng *rand.Rand) []int64 {
	sizes := []int64{0, 1, 1, 2, 2, 3, 4, 5, 8}
	shape := make([]int64, rng.IntN(6))
	for i := range shape {
		shape[i] = sizes[rng.IntN(len(sizes))]
	}
	return shape
}

func filled(rng *rand.Rand, dt ir.DType, shape []int64) *ir.Array {
	a := ir.NewArray(dt, shape...)
	for i := range a.Text {
		a.Text[i] = []string{"", "a", "word", "1.5"}[rng.IntN(4)]
	}
	switch dt {
	case ir.Int64:
		for i := range ir.View[int64](a) {
			ir.View[int64](a)[i] = rng.Int64N(9) - 3
		}
	case ir.Int32:
		for i := range ir.View[int32](a) {
			ir.View[int32](a)[i] = rng.Int32N(9) - 3
		}
	case ir.Float:
		for i := range ir.View[float32](a) {
			ir.View[float32](a)[i] = float32(rng.NormFloat64())
		}
	case ir.Bool:
		for i := range a.Data {
			a.Data[i] = byte(rng.IntN(2))
		}
	default:
		for i := range a.Data {
			a.Data[i] = byte(rng.Uint32())
		}
	}
	if rng.IntN(50) == 0 && dt == ir.Int64 && len(a.Data) > 0 {
		ir.View[int64](a)[0] = 1 << 40
	}
	return a
}

// attributes are some of the attributes that operators read, with valid and invalid values.
func attributes(rng *rand.Rand) ([]*ir.Attr, map[string]*ir.Array) {
	var attrs []*ir.Attr
	for _, name := range []string{
		"axis", "keepdims", "group", "to", "k", "p", "mode", "hidden_size", "batch_dims", "blocksize",
		"select_last_index", "exclusive", "reverse", "transA", "transB",
		"num_outputs", "num_heads", "bits", "block_size", "K", "N", "size", "upper", "largest", "sorted",
		"stash_type", "noop_with_empty_axes", "new_axis", "dtype",
		"output_dtype", "start", "end", "time_axis", "batch_axis", "ceil_mode", "storage_order", "output_height",
		"output_width", "sampling_ratio", "offset_group",
		"kv_num_heads", "q_num_heads", "is_causal", "qk_matmul_output_mode", "onesided", "inverse", "layout",
		"linear_before_reset", "num_groups", "training_mode",
	} {
		if rng.IntN(12) == 0 {
			attrs = append(attrs, &ir.Attr{Name: name, Type: ir.AttrInt, I: rng.Int64N(7) - 2})
		}
	}
	for _, name := range []string{"axes", "perm", "pads", "strides", "dilations", "kernel_shape", "output_padding",
		"output_shape", "split", "starts", "ends", "shape", "scales", "sizes"} {
		if rng.IntN(8) == 0 {
			list := make([]int64, rng.IntN(5))
			for i := range list {
				list[i] = rng.Int64N(6) - 1
			}
			attrs = append(attrs, &ir.Attr{Name: name, Type: ir.AttrInts, Ints: list})
		}
	}
	texts := []string{"", "constant", "reflect", "edge", "wrap", "linear", "cubic", "nearest", "bilinear",
		"SAME_UPPER", "SAME_LOWER", "VALID", "add", "mul", "ij,jk->ik", "...ii->...", "bidirectional", "reverse",
		"tanh", "DCR", "CRD", "sum", "mean"}
	for _, name := range []string{"mode", "auto_pad", "reduction", "equation", "direction", "approximate",
		"padding_mode", "coordinate_transformation_mode", "nearest_mode", "activation", "keep_aspect_ratio_policy"} {
		if rng.IntN(8) == 0 {
			attrs = append(attrs, &ir.Attr{Name: name, Type: ir.AttrString, S: texts[rng.IntN(len(texts))]})
		}
	}
	for _, name := range []string{"alpha", "beta", "epsilon", "gamma", "bias", "clip", "spatial_scale", "ratio",
		"scale", "value_float"} {
		if rng.IntN(10) == 0 {
			attrs = append(attrs, &ir.Attr{Name: name, Type: ir.AttrFloat, F: float32(rng.NormFloat64())})
		}
	}
	arrays := map[string]*ir.Array{}
	if rng.IntN(6) == 0 {
		arrays["value"] = filled(rng, ir.Float, dims(rng))
		attrs = append(attrs, &ir.Attr{Name: "value", Type: ir.AttrTensor})
	}
	return attrs, arrays
}

func sortKeys(keys []opKey) {
	slices.SortFunc(keys, func(a, b opKey) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain),
			cmp.Compare(a.typ, b.typ))
	})
}

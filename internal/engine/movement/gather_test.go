package movement

import (
	"bytes"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
)

func TestGathers(t *testing.T) {
	x := count(2, 3)
	check(t, []example{
		{"Gather", 1, nil, in(x, vec(1, 0, -1)), dims(3, 3)(3, 4, 5, 0, 1, 2, 3, 4, 5)},
		{"Gather", 11, attrs(num("axis", -1)), in(x, dims(1, 2)(2, 0)), dims(2, 1, 2)(2, 0, 5, 3)},
		{"Gather", 13, nil, in(text("a", "b"), scalarOf(1)), ir.TextOf([]string{"b"})},
		{"Gather", 13, nil, in(as(ir.Int4, vec(1, 2, 3)), vec(2, 0)), as(ir.Int4, vec(3, 1))},
		{"Gather", 13, nil, in(x, ir.ArrayOf([]int32{1}, 1)), dims(1, 3)(3, 4, 5)},
		{"Gather", 13, nil, in(x, vec()), count(0, 3)},
		{"Gather", 13, nil, in(x, vec(2)), nil},
		{"Gather", 13, nil, in(x, vec(-3)), nil},
		{"Gather", 13, nil, in(count(0, 3), vec(0)), nil},
		{"Gather", 13, nil, in(x, ir.ArrayOf([]float32{1}, 1)), nil},
		{"Gather", 13, attrs(num("axis", 2)), in(x, vec(0)), nil},
		{"GatherElements", 11, attrs(num("axis", 1)), in(x, dims(2, 2)(2, 0, -3, 1)), dims(2, 2)(2, 0, 3, 4)},
		{"GatherElements", 11, nil, in(x, dims(1, 2)(1, 0)), dims(1, 2)(3, 1)},
		{"GatherElements", 11, nil, in(x, dims(1, 4)(0, 0, 0, 0)), nil},
		{"GatherElements", 11, nil, in(x, vec(0)), nil},
		{"GatherND", 11, nil, in(x, dims(2, 2)(0, 0, 1, -1)), vec(0, 5)},
		{"GatherND", 11, nil, in(x, dims(1, 1)(1)), dims(1, 3)(3, 4, 5)},
		{"GatherND", 12, attrs(num("batch_dims", 1)), in(count(2, 2, 2), dims(2, 1)(1, 0)), dims(2, 2)(2, 3, 4, 5)},
		{"GatherND", 12, nil, in(x, dims(1, 2)(0, 3)), nil},
		{"GatherND", 12, nil, in(x, dims(1, 3)(0, 0, 0)), nil},
		{"GatherND", 12, attrs(num("batch_dims", 1)), in(x, dims(3, 1)(0, 0, 0)), nil},
	})
}

func TestScatters(t *testing.T) {
	add := attrs(word("reduction", "add"))
	check(t, []example{
		{"Scatter", 9, attrs(num("axis", 1)), in(dims(1, 3)(0, 0, 0), dims(1, 2)(2, 0), dims(1, 2)(7, 8)),
			dims(1, 3)(8, 0, 7)},
		{"ScatterElements", 11, nil, in(dims(2, 2)(0, 0, 0, 0), dims(1, 2)(-1, 0), dims(1, 2)(7, 8)),
			dims(2, 2)(0, 8, 7, 0)},
		{"ScatterElements", 16, add, in(vec(1, 1), vec(1, 1), vec(5, 6)), vec(1, 12)},
		{"ScatterElements", 18, attrs(word("reduction", "max")), in(vec(5, 5), vec(0, 1), vec(4, 6)), vec(5, 6)},
		{"ScatterElements", 18, attrs(word("reduction", "min")), in(vec(5, 5), vec(0, 1), vec(4, 6)), vec(4, 5)},
		{"ScatterElements", 18, attrs(word("reduction", "mul")), in(vec(5, 5), vec(0, 0), vec(2, 3)), vec(30, 5)},
		{"ScatterElements", 13, nil, in(text("a", "b"), vec(1), text("z")), text("a", "z")},
		{"ScatterElements", 16, add, in(text("a", "b"), vec(1), text("z")), nil},
		{"ScatterElements", 13, nil, in(vec(1, 1), vec(2), vec(5)), nil},
		{"ScatterElements", 13, nil, in(vec(1, 1), vec(0), vec(5, 6)), nil},
		{"ScatterElements", 13, nil, in(vec(1, 1), vec(0), text("a")), nil},
		{"ScatterElements", 13, attrs(word("reduction", "mean")), in(vec(1, 1), vec(0), vec(5)), nil},
		{"ScatterND", 11, nil, in(count(2, 2), dims(1, 1)(1), dims(1, 2)(8, 9)), dims(2, 2)(0, 1, 8, 9)},
		{"ScatterND", 16, add, in(count(2, 2), dims(2, 2)(1, 1, 1, 1), vec(10, 20)), dims(2, 2)(0, 1, 2, 33)},
		{"ScatterND", 11, nil, in(count(2, 2), dims(1, 2)(1, 2), vec(10)), nil},
		{"ScatterND", 11, nil, in(count(2, 2), dims(1, 2)(1, 1), dims(1, 1)(10)), nil},
	})
}

// Each sum of halves is rounded: 2048 + 1 + 1 stays 2048 in binary16, as in NumPy.
func TestReducedHalvesAreRounded(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float16, ir.BFloat16} {
		large := map[ir.DType]float64{ir.Float16: 2048, ir.BFloat16: 256}[dt]
		data, updates, want := ir.NewArray(dt, 1), ir.NewArray(dt, 2), ir.NewArray(dt, 1)
		number.Write(data, 0, []float64{large})
		number.Write(updates, 0, []float64{1, 1})
		number.Write(want, 0, []float64{large})
		check(t, []example{{"ScatterElements", 16, attrs(word("reduction", "add")), in(data, vec(0, 0), updates),
			want}})
	}
}

// A sum of bools is or, a product is and (NumPy).
func TestReducedBools(t *testing.T) {
	for reduction, want := range map[string][]byte{"add": {1, 1}, "mul": {0, 1}, "max": {1, 1}, "min": {0, 1}} {
		got, err := run("ScatterElements", 18, 1, attrs(word("reduction", reduction)), as(ir.Bool, vec(0, 1)),
			vec(0, 1), as(ir.Bool, vec(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got[0].Data, want) {
			t.Errorf("%s: %v, want %v", reduction, got[0].Data, want)
		}
	}
}

func TestTensorScatter(t *testing.T) {
	past, update := dims(2, 3, 1)(0, 1, 2, 3, 4, 5), dims(2, 2, 1)(10, 11, 12, 13)
	circular := attrs(word("mode", "circular"))
	check(t, []example{
		{"TensorScatter", 24, nil, in(past, update), dims(2, 3, 1)(10, 11, 2, 12, 13, 5)},
		{"TensorScatter", 24, nil, in(past, update, vec(1, 0)), dims(2, 3, 1)(0, 10, 11, 12, 13, 5)},
		{"TensorScatter", 24, circular, in(past, update, vec(2, 4)), dims(2, 3, 1)(11, 1, 10, 3, 12, 13)},
		{"TensorScatter", 24, nil, in(past, update, vec(2, 0)), nil},
		{"TensorScatter", 24, nil, in(past, update, vec(0)), nil},
		{"TensorScatter", 24, attrs(num("axis", 0)), in(past, update), nil},
	})
}

func TestCompressAndReverseSequence(t *testing.T) {
	yes := func(b ...int64) *ir.Array { return as(ir.Bool, vec(b...)) }
	check(t, []example{
		{"Compress", 9, attrs(num("axis", 0)), in(count(3, 2), yes(0, 1, 1)), dims(2, 2)(2, 3, 4, 5)},
		{"Compress", 11, attrs(num("axis", -1)), in(count(3, 2), yes(0, 1)), dims(3, 1)(1, 3, 5)},
		{"Compress", 9, nil, in(count(3, 2), yes(1, 0, 0, 1)), vec(0, 3)},
		{"Compress", 9, nil, in(count(1), yes(1, 1)), nil},
		{"Compress", 9, nil, in(count(1), vec(1)), nil},
		{"ReverseSequence", 10, nil, in(count(3, 2), vec(3, 2)), dims(3, 2)(4, 3, 2, 1, 0, 5)},
		{"ReverseSequence", 10, attrs(num("batch_axis", 0), num("time_axis", 1)), in(count(2, 3), vec(0, 2)),
			dims(2, 3)(0, 1, 2, 4, 3, 5)},
		{"ReverseSequence", 10, nil, in(count(3, 2), vec(4, 2)), nil},
		{"ReverseSequence", 10, attrs(num("batch_axis", 0)), in(count(3, 2), vec(1, 1, 1)), nil},
	})
}

func TestSequences(t *testing.T) {
	a, b, s := vec(1), vec(2, 3), sequence(vec(1), vec(2, 3))
	check(t, []example{
		{"SequenceEmpty", 11, nil, nil, sequence()},
		{"SequenceConstruct", 11, nil, in(a, b), s},
		{"SequenceConstruct", 11, nil, in(a, text("a")), nil},
		{"SequenceInsert", 11, nil, in(sequence(a), b), s},
		{"SequenceInsert", 11, nil, in(sequence(b), a, scalarOf(-1)), s},
		{"SequenceInsert", 11, nil, in(s, a, scalarOf(3)), nil},
		{"SequenceInsert", 11, nil, in(s, text("a")), nil},
		{"SequenceErase", 11, nil, in(s), sequence(a)},
		{"SequenceErase", 11, nil, in(s, scalarOf(0)), sequence(b)},
		{"SequenceErase", 11, nil, in(sequence()), nil},
		{"SequenceAt", 11, nil, in(s, scalarOf(-1)), b},
		{"SequenceAt", 11, nil, in(s, scalarOf(2)), nil},
		{"SequenceAt", 11, nil, in(a, scalarOf(0)), nil},
		{"SequenceLength", 11, nil, in(s), scalarOf(2)},
		{"SplitToSequence", 11, nil, in(vec(1, 2, 3), scalarOf(2)), sequence(vec(1, 2), vec(3))},
		{"SplitToSequence", 11, nil, in(vec(1, 2, 3), vec(1, 2)), s},
		{"SplitToSequence", 11, attrs(num("keepdims", 0)), in(vec(1, 2)), sequence(scalarOf(1), scalarOf(2))},
		{"SplitToSequence", 11, nil, in(vec(1, 2, 3), vec(1, 1)), nil},
		{"ConcatFromSequence", 11, attrs(num("axis", 0)), in(s), vec(1, 2, 3)},
		{"ConcatFromSequence", 11, attrs(num("axis", -1), num("new_axis", 1)), in(sequence(vec(1, 2), vec(3, 4))),
			dims(2, 2)(1, 3, 2, 4)},
		{"ConcatFromSequence", 11, attrs(num("axis", 0)), in(sequence()), nil},
		{"ConcatFromSequence", 11, attrs(num("axis", 0), num("new_axis", 1)), in(s), nil},
		{"Optional", 15, nil, nil, &ir.Array{Kind: ir.None}},
		{"Optional", 15, nil, in(a), a},
		{"OptionalHasElement", 15, nil, in(s), as(ir.Bool, scalarOf(1))},
		{"OptionalHasElement", 18, nil, nil, as(ir.Bool, scalarOf(0))},
		{"OptionalHasElement", 18, nil, in(&ir.Array{Kind: ir.None}), as(ir.Bool, scalarOf(0))},
		{"OptionalGetElement", 15, nil, in(a), a},
		{"OptionalGetElement", 15, nil, in(&ir.Array{Kind: ir.None}), nil},
	})
}

// A tensor that becomes an item is copied: the plan reuses the tensor's memory.
func TestItemsAreCopies(t *testing.T) {
	x := vec(1)
	for typ, inputs := range map[string][]*ir.Array{"SequenceConstruct": in(x), "SequenceInsert": in(sequence(), x)} {
		out, err := run(typ, 11, 1, nil, inputs...)
		if err != nil {
			t.Fatal(err)
		}
		if &out[0].Items[0].Data[0] == &x.Data[0] {
			t.Errorf("%s shares its input's memory", typ)
		}
	}
}

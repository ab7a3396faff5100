package prune

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// smallestFall is the definition: sort all elements of all tensors by magnitude, stably, and
// set the first RoundToEven(amount·n) to +0.
func smallestPruned(dts []ir.DType, payloads [][]byte, amount float64) [][]byte {
	type place struct{ tensor, index int }
	var order []place
	var values [][]float64
	out := make([][]byte, len(payloads))
	for i, p := range payloads {
		out[i] = slices.Clone(p)
		values = append(values, decode(dts[i], p))
		for j := range values[i] {
			order = append(order, place{i, j})
		}
	}
	slices.SortStableFunc(order, func(a, b place) int {
		return cmp.Compare(math.Abs(values[a.tensor][a.index]), math.Abs(values[b.tensor][b.index]))
	})
	for _, p := range order[:int(math.RoundToEven(amount*float64(len(order))))] {
		size := int(dts[p.tensor].Bits() / 8)
		clear(out[p.tensor][p.index*size : (p.index+1)*size])
	}
	return out
}

var floatTypes = []ir.DType{ir.Float, ir.Float16, ir.BFloat16, ir.Double}

// drawValues draws numbers of one kind: ordinary ones, ties, mostly zeros of either sign,
// one constant, tiny ones.
func drawValues(t *rapid.T, n int) []float64 {
	element := rapid.SampledFrom([]*rapid.Generator[float64]{
		rapid.Float64Range(-2, 2),
		rapid.SampledFrom([]float64{-1, 1, 0.5, -0.5, 2}),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 0, 0, 1}),
		rapid.Just(-0.25),
		rapid.Just(0.0),
		rapid.Float64Range(-1e-30, 1e-30),
		rapid.Map(rapid.IntRange(0, 9), func(i int) float64 { return 1 + float64(i)*1e-14 }),
	}).Draw(t, "kind")
	return rapid.SliceOfN(element, n, n).Draw(t, "values")
}

func drawAmount(t *rapid.T) float64 {
	return rapid.OneOf(rapid.SampledFrom([]float64{1, 0.5, 0.4}), rapid.Float64Range(math.SmallestNonzeroFloat64,
		1)).Draw(t, "amount")
}

func TestL1IsItsDefinition(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dt := rapid.SampledFrom(floatTypes).Draw(r, "type")
		n := rapid.IntRange(1, 300).Draw(r, "n")
		values, amount := drawValues(r, n), drawAmount(r)
		b := newBench(t)
		w := b.weight("w", dt, []int64{int64(n), 1}, values...)
		b.node("MatMul", []*ir.Value{nil, w})
		want := smallestPruned([]ir.DType{dt}, [][]byte{b.bytes(w)}, amount)[0]
		b.run(l1Method, "amount", text(amount))
		if got := b.bytes(w); !bytes.Equal(got, want) {
			r.Errorf("got %v, want %v", decode(dt, got), decode(dt, want))
		}
	})
}

func TestL1GlobalIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		amount := drawAmount(r)
		b := newBench(t)
		var dts []ir.DType
		var before [][]byte
		var ws []*ir.Value
		for i := range rapid.IntRange(1, 5).Draw(r, "tensors") {
			dt := rapid.SampledFrom(floatTypes).Draw(r, "type")
			n := rapid.IntRange(1, 60).Draw(r, "n")
			w := b.weight(fmt.Sprint("w", i), dt, []int64{int64(n), 1}, drawValues(r, n)...)
			b.node("MatMul", []*ir.Value{nil, w})
			dts, ws, before = append(dts, dt), append(ws, w), append(before, b.bytes(w))
		}
		want := smallestPruned(dts, before, amount)
		b.run(l1GlobalMethod, "amount", text(amount))
		for i, w := range ws {
			if got := b.bytes(w); !bytes.Equal(got, want[i]) {
				r.Errorf("tensor %d: got %v, want %v", i, decode(dts[i], got), decode(dts[i], want[i]))
			}
		}
	})
}

func TestAmountsByPatternLastMatchCounts(t *testing.T) {
	b := newBench(t)
	names := []string{"encoder.0.w", "encoder.1.w", "head.w"}
	var ws []*ir.Value
	for _, name := range names {
		w := b.weight(name, ir.Float, []int64{4, 1}, 1, 2, 3, 4)
		b.node("MatMul", []*ir.Value{nil, w})
		ws = append(ws, w)
	}
	rows := b.run(l1Method, "amount", "0.25", "amounts", "encoder.*=0.75,*.1.w=0")
	for i, want := range [][]float64{{0, 0, 0, 4}, {1, 2, 3, 4}, {0, 2, 3, 4}} {
		if got := b.values(ws[i]); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", names[i], got, want)
		}
	}
	if r := rowOf(t, rows, "encoder.1.w"); r.Status != pass.Skipped || r.Reason != roundsToZero {
		t.Errorf("amount 0: %v, %q", r.Status, report.Why(r))
	}
	if r := rowOf(t, rows, "head.w"); r.Status != pass.Changed ||
		report.Why(r) != "pruned: 1 of 4 elements, the largest 1" {
		t.Errorf("head: %v, %q", r.Status, report.Why(r))
	}
}

// Amount 0 prunes only the weights of the amounts, as an option and as None in a struct.
func TestAmount0PrunesOnlyTheAmounts(t *testing.T) {
	for _, m := range []*pass.Method{l1Method, l2Method, randomMethod} {
		b := newBench(t)
		head, other := b.weight("head.w", ir.Float, []int64{4, 2}, 1, 2, 3, 4, 5, 6, 7, 8),
			b.weight("w", ir.Float, []int64{4, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
		b.node("MatMul", []*ir.Value{nil, head})
		b.node("MatMul", []*ir.Value{nil, other})
		b.run(m, "amount", "0", "amounts", "head.*=0.5")
		if slices.Contains(b.values(other), 0) || !slices.Contains(b.values(head), 0) {
			t.Errorf("%s: got %v and %v, want zeros in the first only", m.Name, b.values(head), b.values(other))
		}
	}
	for _, o := range []pass.Options{L1{Amount: None}, L2{Amount: None}, Random{Amount: None}, Channel{Amount: None}} {
		if !slices.Contains(pass.Values(o), pass.Option{Name: "amount", Value: "0"}) {
			t.Errorf("%s: got %v, want amount 0", o.Method().Name, pass.Values(o))
		}
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		m           *pass.Method
		name, value string
	}{
		{l1Method, "amount", "40"}, {l1Method, "amount", "-0.1"}, {l1Method, "amount", "NaN"}, {l1Method, "amount", "-1"},
		{l1GlobalMethod, "amount", "0"}, {l1GlobalMethod, "amount", "x"},
		{l1Method, "amounts", "0.5"}, {l1Method, "amounts", "=0.5"}, {l1Method, "amounts", "a=2"},
		{l1Method, "amounts", "[=0.5"},
		{nmMethod, "pattern", "4:2"}, {nmMethod, "pattern", "0:4"}, {nmMethod, "pattern", "4:4"}, {nmMethod, "pattern", "2"},
		{nmMethod, "pattern", "2:1000"},
		{randomMethod, "seed", "-1"},
	} {
		_, err := newBench(t).try(c.m, c.name, c.value)
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s --%s %s: got %v, want an error of one line", c.m.Name, c.name, c.value, err)
		}
	}
}

func TestAmountsOfOptionStructsAreChecked(t *testing.T) {
	for _, o := range []pass.Options{
		L1{Amount: 2}, L2{Amount: -0.1}, Channel{Amount: Amount(math.NaN())}, Random{Amounts: Amounts{{"a", 2}}},
		L1{Amounts: Amounts{{"[", 0.5}}},
		L1Global{Amount: 2}, L1Global{Amount: -1}, Layers{Amount: 2}, LowRank{Amount: 2},
	} {
		if err := pass.CheckStep(o); err == nil || !strings.Contains(err.Error(), "amount") {
			t.Errorf("%s %+v: got %v, want an error about the amount", o.Method().Name, o, err)
		}
	}
}

func TestRecipeTextReproducesOptions(t *testing.T) {
	known := []*pass.Method{l1Method, l1GlobalMethod, l2Method, randomMethod, nmMethod}
	given := "steps:\n- method: l1\n  amounts: [\"enc.*=0.75\", \"b=0\"]\n- method: nm\n  pattern: \"1:4\"\n- method: " +
		"random\n  seed: 7\n  amount: 0.1\n- method: l2\n  amount: 0\n"
	recipe, err := pass.ParseRecipe(known, []byte(given))
	if err != nil {
		t.Fatal(err)
	}
	once, err := recipe.Text(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"amounts: enc.*=0.75,b=0", `pattern: "1:4"`, "seed: \"7\"", "amount: \"0.1\"",
		"amount: \"0\""} {
		if !strings.Contains(string(once), part) {
			t.Errorf("no %s in %s", part, once)
		}
	}
	again, err := pass.ParseRecipe(known, once)
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := again.Text(nil); err != nil || !bytes.Equal(once, twice) {
		t.Errorf("%v: got %s, want %s", err, twice, once)
	}
}

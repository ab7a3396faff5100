package report

import (
	"bytes"
	"context"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// odd holds values whose roundings are easy to follow: errors 0, .5, .25 and 0.
func odd() *ir.Tensor { return weight("w", []int64{2, 2}, 0, 1.5, -2.25, 4) }

func find(t *testing.T, r *Report, tensor string) Weight {
	t.Helper()
	for _, w := range r.Weights {
		if w.Tensor == tensor {
			return w
		}
	}
	t.Fatalf("no weight is called %q", tensor)
	return Weight{}
}

func near(got *float64, want float64) bool { return got != nil && math.Abs(*got-want) < 5e-4 }

func TestBuildMeasuresOneStep(t *testing.T) {
	r := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).build(t)
	w := find(t, r, "w")
	if want := (Change{16, 4 + 4}); w.Bytes != want {
		t.Errorf("bytes: got %v, want %v", w.Bytes, want)
	}
	if w.RuntimeBytes != 16 {
		t.Errorf("a form that is folded holds %d bytes, want the dense 16", w.RuntimeBytes)
	}
	e := w.Error
	if e == nil || e.Exact || !near(e.SQNR, 10*math.Log10((1.5*1.5+2.25*2.25+16)/(0.5*0.5+0.25*0.25))) {
		t.Errorf("SQNR: got %+v", e)
	}
	if want := (1.5*2 + 2.25*2 + 16) / math.Sqrt((1.5*1.5+2.25*2.25+16)*(4+4+16)); !near(e.Cosine, want) {
		t.Errorf("cosine: got %v, want %v", e.Cosine, want)
	}
	if e.Max == nil || *e.Max != 0.5 {
		t.Errorf("largest error: got %v, want 0.5", e.Max)
	}
	if !near(w.Sparsity, 0.25) {
		t.Errorf("sparsity: got %v, want 0.25", w.Sparsity)
	}
	row := r.Ledger[0]
	if want := (Made{"int8", []int64{2, 2}, 8, 4, 4, 0, 16, []string{"w_q", "c"}}); !reflect.DeepEqual(*row.After, want) {
		t.Errorf("row: got %+v, want %+v", *row.After, want)
	}
	if !reflect.DeepEqual(row.Figures, w.Figures) {
		t.Errorf("one step: its figures %+v differ from the weight's %+v", row.Figures, w.Figures)
	}
}

// What a pass promised does not matter: the figures are those of the file.
func TestBuildMeasuresTheResult(t *testing.T) {
	in := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).input(t)
	for _, v := range in.Result.IR.Graph.Consts() {
		if v.Const.DType == ir.Int8 {
			v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Mem{0, 0, 0, 7}})
		}
	}
	r, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if w := find(t, r, "w"); *w.Sparsity != 0.75 || *w.Error.Max != 3 {
		t.Errorf("got %v zeros, largest error %v", *w.Sparsity, *w.Error.Max)
	}
}

// The files of a run whose digests are known late make the same report, and they are requested once the weights are
// measured.
func TestBuildTakesLateFiles(t *testing.T) {
	in := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).input(t)
	want, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	read := false
	for _, v := range in.Result.IR.Graph.Consts() {
		payload, err := in.Eval.ReadAll(t.Context(), v.Const)
		if err != nil {
			t.Fatal(err)
		}
		v.SetConst(&ir.Tensor{Spec: v.Const.Spec, Source: ir.Span{R: reading{bytes.NewReader(payload), &read}}})
	}
	source, result := in.Source.Files, in.Result.Files
	in.Source.Files, in.Result.Files = nil, nil
	in.Files = func(context.Context) ([]File, []File, error) {
		if !read {
			t.Error("the files are requested before the weights are measured")
		}
		return source, result, nil
	}
	got, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != want.Digest || len(got.Result.Files) == 0 || got.Result.Files[0].SHA256 == "" {
		t.Errorf("got the digest %s with files %v, want %s", got.Digest, got.Result.Files, want.Digest)
	}
}

// A reading records that something was read.
type reading struct {
	io.ReaderAt
	done *bool
}

func (r reading) ReadAt(b []byte, off int64) (int, error) {
	*r.done = true
	return r.ReaderAt.ReadAt(b, off)
}

func TestBuildTotals(t *testing.T) {
	j := job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{}}
	in := j.input(t)
	r, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Totals
	want := Totals{
		FileBytes:   Change{in.Source.Files[0].Bytes, in.Result.Files[0].Bytes},
		Ratio:       got.Ratio,
		Parameters:  Change{6, 6},
		TensorBytes: Change{24, 8 + 4 + 4},
		LoadedBytes: Change{24, 24}, // the folded weight and the bias; the scale is folded away with it
		// what folding leaves free fits into what the process has free
		RuntimeBytes: Change{24, 24},
		RuntimePeak:  Change{24, 24},
		Runtime:      pass.MeasuredRuntime,
		DTypes:       []DTypeBytes{{"float", Change{24, 12}}, {"int8", Change{0, 4}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if r := float64(want.FileBytes.Before) / float64(want.FileBytes.After); math.Abs(got.Ratio-r) > 1e-4 {
		t.Errorf("ratio: got %v, want %v", got.Ratio, r)
	}
	if want := (Coverage{16, 24, 0.666667}); r.Coverage != want {
		t.Errorf("coverage: got %+v, want %+v", r.Coverage, want)
	}
}

// Of a weight that does not fit into what the process has free, the copies of folding count, and the report says which
// form makes them.
func TestBuildEstimatesFoldedMemory(t *testing.T) {
	w := weight("w", []int64{1 << 20, 2}, make([]float32, 2<<20)...)
	r := (&job{model: network(w), methods: []*pass.Method{rounding}}).build(t)
	held, resident, peak := r.Totals.LoadedBytes, r.Totals.RuntimeBytes, r.Totals.RuntimePeak
	if held.Before != held.After || resident.Before <= held.Before || resident.After <= resident.Before ||
		peak.After <= resident.After {
		t.Errorf("constants %v, resident %v, peak %v: want more than the constants, and most where the weight is folded",
			held, resident, peak)
	}
	if note := r.MemoryNote(); !strings.Contains(note, "cast-mul") {
		t.Errorf("the note names no form: %q", note)
	}
}

func TestBuildFollowsAPipeline(t *testing.T) {
	methods := []*pass.Method{halving, rounding, packing}
	r := (&job{model: network(odd()), methods: methods, in: Input{Errors: true}}).build(t)
	w := find(t, r, "w")
	if want := []string{"halving", "rounding", "packing"}; !reflect.DeepEqual(w.Methods, want) {
		t.Errorf("methods: got %v, want %v", w.Methods, want)
	}
	// Four quantized values, four bytes of mask, the scale; dense floats once loaded.
	if w.Bytes != (Change{16, 12}) || w.RuntimeBytes != 16 {
		t.Errorf("got %v on disk and %d held", w.Bytes, w.RuntimeBytes)
	}
	if want := 10 * math.Log10((1.5*1.5+2.25*2.25+16)/(1.5*1.5+0.25*0.25)); !near(w.Error.SQNR, want) {
		t.Errorf("from end to end: got %v, want %v", *w.Error.SQNR, want)
	}
	if r.Coverage != (Coverage{16, 24, 0.666667}) {
		t.Errorf("a scale of an earlier step counts, or a weight twice: %+v", r.Coverage)
	}
	expected := map[string]float64{
		"halving":  10 * math.Log10((1.5*1.5+2.25*2.25+16)/(1.5*1.5)),
		"rounding": 10 * math.Log10((2.25*2.25+16)/(0.25*0.25)),
	}
	for _, x := range r.steps() {
		if want, ok := expected[x.Method]; ok && !near(x.Error.SQNR, want) {
			t.Errorf("%s: got %v, want %v", x.Method, *x.Error.SQNR, want)
		}
		if x.Method == "packing" && (!x.Error.Exact || x.Error.SQNR != nil || x.After.Indices != 4) {
			t.Errorf("packing: got %+v, %+v", x.Error, x.After)
		}
		if got, want := x.Superseded, x.Method != "packing"; got != want {
			t.Errorf("%s: superseded is %v", x.Method, got)
		}
	}
	// The weight and the bias, and the mask, which no node reads: the scale and the shape are folded away.
	if want := (Change{24, 16 + 8 + 4}); r.Totals.LoadedBytes != want {
		t.Errorf("held: got %v, want %v", r.Totals.LoadedBytes, want)
	}
}

// A later step in place leaves a constant of the same name: each step is still
// measured by what it made itself.
func TestBuildDistinguishesStepsInPlace(t *testing.T) {
	r := (&job{model: network(odd()), methods: []*pass.Method{halving, damping}, in: Input{Errors: true}}).build(t)
	ref2 := 1.5*1.5 + 2.25*2.25 + 16
	if want := 10 * math.Log10(ref2/(1.5*1.5)); !near(r.Ledger[0].Error.SQNR, want) {
		t.Errorf("halving: got %v, want %v", *r.Ledger[0].Error.SQNR, want)
	}
	d := 0.75 * 0.75
	if want := 10 * math.Log10(ref2/(1.5*1.5+d*(2.25*2.25+16))); !near(find(t, r, "w").Error.SQNR, want) {
		t.Errorf("from end to end: got %v, want %v", *find(t, r, "w").Error.SQNR, want)
	}
	if w := find(t, r, "w"); w.Bytes != (Change{16, 16}) || w.RuntimeBytes != 16 {
		t.Errorf("got %+v", w)
	}
}

// A plan has the figures of what will be written.
func TestBuildPlans(t *testing.T) {
	for _, methods := range [][]*pass.Method{{rounding}, {listing}, {halving, rounding, packing}} {
		j := job{model: network(odd()), methods: methods}
		in := j.input(t)
		written, err := Build(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		in.Result = Model{Path: "plan.onnx", IR: j.rewritten, Planned: true}
		plan, err := Build(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if !plan.Result.Planned || !reflect.DeepEqual(plan.Weights, written.Weights) ||
			!reflect.DeepEqual(plan.Ledger, written.Ledger) {
			t.Errorf("%d steps: planned %+v, written %+v", len(methods), plan.Weights, written.Weights)
		}
		plan.Totals.FileBytes, plan.Totals.Ratio = written.Totals.FileBytes, written.Totals.Ratio
		if !reflect.DeepEqual(plan.Totals, written.Totals) {
			t.Errorf("%d steps: planned %+v, written %+v", len(methods), plan.Totals, written.Totals)
		}
	}
}

func TestBuildCountsTensorsInAttributes(t *testing.T) {
	for _, methods := range [][]*pass.Method{{listing}, {damping, listing}} {
		in := (&job{model: network(odd()), methods: methods, in: Input{Errors: true}}).input(t)
		r, err := Build(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		w := find(t, r, "w")
		if w.Bytes != (Change{16, 12}) || w.RuntimeBytes != 16 || !near(w.Sparsity, 0.75) {
			t.Errorf("got %+v", w)
		}
		if r.Totals.TensorBytes != (Change{24, 20}) || r.Totals.LoadedBytes != (Change{24, 24}) {
			t.Errorf("got %+v", r.Totals)
		}
	}
}

// A weight whose original some consumer still needs is stored twice, which counts.
func TestBuildCountsOriginalsOfChangedWeights(t *testing.T) {
	in := (&job{model: network(odd()), methods: []*pass.Method{rounding}}).input(t)
	g := in.Result.IR.Graph
	g.AddConst("w", odd())
	r, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if w := find(t, r, "w"); w.Bytes != (Change{16, 24}) || w.RuntimeBytes != 32 {
		t.Errorf("got %+v", w)
	}
	if want := (Change{24, 40}); r.Totals.LoadedBytes != want {
		t.Errorf("held: got %v, want %v", r.Totals.LoadedBytes, want)
	}
}

func TestBuildCountsSharedPayloadsOnce(t *testing.T) {
	in := (&job{model: network(odd(), weight("tied", []int64{2, 2}, 0, 1.5, -2.25, 4)),
		methods: []*pass.Method{rounding}}).input(t)
	in.Rows[1].SharedWith, in.Rows[1].After = "w", in.Rows[0].After
	r, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	w, tied := find(t, r, "w"), find(t, r, "tied")
	if w.Bytes.After != 8 || tied.Bytes != (Change{16, 0}) || tied.SharedWith != "w" {
		t.Errorf("got %+v and %+v", w, tied)
	}
	if r.Ledger[1].After.Bytes != 0 {
		t.Errorf("got %+v", r.Ledger[1].After)
	}
}

// A later step that skips the quantized values has a reason; one that skips their scale
// has nothing to say about the weight.
func TestBuildJoinsReasonsOfPayloads(t *testing.T) {
	in := (&job{model: network(odd()), methods: []*pass.Method{rounding}}).input(t)
	values, scale := in.Rows[0].After[0], in.Rows[0].After[1]
	in.Rows = append(in.Rows[:2:2],
		pass.Row{Method: "later", Tensor: values.Value.Name, Before: values.Tensor, Reason: pass.Reason{Code: pass.Larger}},
		pass.Row{Method: "later", Tensor: scale.Value.Name, Before: scale.Tensor, Reason: pass.Reason{Code: pass.Unused}})
	r, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if w := find(t, r, "w"); w.Remarks() != "later: would become larger" || len(r.Weights) != 2 {
		t.Errorf("got %q, %d weights", w.Remarks(), len(r.Weights))
	}
}

func TestBuildCountsSelectedWeights(t *testing.T) {
	j := job{model: network(odd(), weight("other", []int64{2, 2}, 1, 2, 3, 4)), methods: []*pass.Method{rounding}}
	j.set = map[string]string{"only": "w"}
	if r := j.build(t); r.Coverage != (Coverage{16, 16, 1}) {
		t.Errorf("one of two selected: %+v", r.Coverage)
	}
	j.model, j.set = network(odd()), map[string]string{"skip": "*"}
	if r := j.build(t); r.Coverage != (Coverage{}) {
		t.Errorf("none selected: %+v", r.Coverage)
	}
}

func TestBuildOmitsNaN(t *testing.T) {
	nan := float32(math.NaN())
	r := (&job{model: network(weight("w", []int64{2, 2}, nan, 1, 2, 3)), methods: []*pass.Method{packing},
		in: Input{Errors: true}}).build(t)
	e := find(t, r, "w").Error
	if !e.Exact || e.SQNR != nil || e.Cosine != nil || e.Max != nil {
		t.Errorf("kept bit for bit: got %+v", e)
	}
	valid(t, r)
}

func TestBuildEvaluatesGates(t *testing.T) {
	j := job{model: network(odd()), methods: []*pass.Method{rounding}}
	for _, c := range []struct {
		limit Limit
		held  bool
	}{
		{Limit{"require-coverage", 0.66}, true},
		{Limit{"require-coverage", 0.67}, false},
		{Limit{"min-ratio", 0.1}, true},
		{Limit{"min-ratio", 100}, false},
		{Limit{"max-size", 1 << 20}, true},
		{Limit{"max-size", 10}, false},
	} {
		j.in.Gates = []Limit{c.limit}
		r := j.build(t)
		if r.Gates[0].Held != c.held || r.Passed() != c.held {
			t.Errorf("%+v: got %+v", c.limit, r.Gates[0])
		}
	}
	j.in.Gates = []Limit{{"max-regret", 1}}
	if _, err := Build(t.Context(), j.input(t)); err == nil {
		t.Error("a gate of no known name was taken")
	}
}

func TestBuildRefusesAWrongRestore(t *testing.T) {
	in := (&job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).input(t)
	in.Rows[0].Restore = func([]*ir.Tensor) *ir.Tensor { return weight("", []int64{4}, 1, 2, 3, 4) }
	if _, err := Build(t.Context(), in); err == nil {
		t.Error("a tensor of another shape was compared")
	}
}

func TestBuildIsTheSameWithAnyNumberOfWorkers(t *testing.T) {
	var ws []*ir.Tensor
	for i := range 12 {
		xs := make([]float32, (i+1)*(i+1)*400)
		for k := range xs {
			xs[k] = float32(k%97) * 0.37
		}
		ws = append(ws, weight(string(rune('a'+i)), []int64{int64(i+1) * 20, int64(i+1) * 20}, xs...))
	}
	in := (&job{model: network(ws...), methods: []*pass.Method{halving, rounding}, in: Input{Errors: true}}).input(t)
	var first []byte
	for _, workers := range []int{1, 2, 8} {
		in.Workers = workers
		in.Environment = Observe(workers)()
		r, err := Build(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		r.Environment = nil
		got := render(t, r)
		if first == nil {
			first = got
		}
		if !bytes.Equal(got, first) {
			t.Errorf("%d workers give another report", workers)
		}
	}
}

// render is r in every form.
func render(t *testing.T, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, write := range []func() error{func() error { return r.JSON(&b) }, func() error { return r.Markdown(&b) }, func() error { return r.HTML(&b) }} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestReadInvertsJSON(t *testing.T) {
	r := (&job{model: network(odd()), methods: []*pass.Method{halving, rounding}, in: Input{Errors: true}}).build(t)
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(render(t, again), render(t, r)) {
		t.Error("the report changed on its way through JSON")
	}
	for _, bad := range []string{"", "[]", `{"schema_version": 1}`} {
		if _, err := Read(bytes.NewBufferString(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestObserveThisMachine(t *testing.T) {
	e := Observe(2)()
	if e.Workers != 2 || e.LogicalCPUs < 1 || e.WallSeconds < 0 || e.StartedAt == "" {
		t.Errorf("got %+v", e)
	}
	if e.OS == "linux" && (e.PeakResident < 1<<20 || e.PeakResident > 1<<40) {
		t.Errorf("peak resident: got %d bytes", e.PeakResident)
	}
}

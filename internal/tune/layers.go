package tune

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A layer is a weight, or several that share a payload, with its candidate methods.
type layer struct {
	names     []string
	consumers []string
	module    string
	bytes     int64
	variants  []variant // without the unchanged weight
	// By candidate, weights that it also changes and that do not become smaller: quantized biases.
	companions map[int][]string
	small      bool // too small to be measured on its own
}

// weights are the weights that candidate i changes.
func (l *layer) weights(i int) []string { return slices.Concat(l.names, l.companions[i]) }

// A variant is a candidate, by index, with the layer's bytes and sensitivity. Bytes include nodes and names.
type variant struct {
	candidate   int
	bytes       int64
	sensitivity float64
	failed      string // why it could not be measured; empty if it was
}

// layers finds the weights that candidates change, and measures each. Negligible layers are measured together if
// together is set.
func (t *tuner) layers(ctx context.Context, together bool) ([]*layer, error) {
	var list []*layer
	known := false
	if !together { // a search needs more of the candidates' steps than measurements
		list, known = knownLayers(t.Journal, t.Candidates)
	}
	if !known {
		var err error
		if list, err = t.find(ctx, together); err != nil {
			return nil, err
		}
	}
	t.search.Data = pass.Data{Use: "search", Path: t.Data.Path, Labels: t.Data.Options.Labels, Samples: t.set.Len(),
		Seed: t.Data.Seed}
	t.search.Measure, t.search.Samples = measures[t.byScores()], len(t.spread(t.samples(list)))*t.batch()
	t.search.Layers = t.sensitivities(list)
	for _, l := range list {
		// After the report has them: what failed is listed, and not chosen.
		l.variants = slices.DeleteFunc(l.variants, func(v variant) bool { return v.failed != "" })
	}
	return list, nil
}

// foundUnit is the name of the unit of the layers that are found, before they are measured.
const foundUnit = "layers"

// knownLayers are the layers if the journal has all measurements, as that of a plan has when its workers have ended:
// then nothing is built.
func knownLayers(j ir.Journal, candidates []Candidate) (list []*layer, ok bool) {
	result := func(unit string) ([]byte, bool) {
		parts, ok := j.Result(unit)
		if !ok {
			return nil, false
		}
		b := make([]byte, parts[0].Size())
		return b, ir.ReadFull(parts[0], b, 0) == nil
	}
	if j == nil {
		return nil, false
	}
	text, ok := result(foundUnit)
	var found []pass.Sensitivity
	if !ok || bounded.JSON(text, &found) != nil {
		return nil, false
	}
	for _, f := range found {
		l := &layer{names: f.Tensors, consumers: f.Consumers, module: f.Module, bytes: f.Bytes}
		for _, m := range f.Variants {
			v := variant{candidate: slices.IndexFunc(candidates, func(c Candidate) bool { return c.Name == m.Method })}
			b, ok := result(unitOf(candidates, l, &v))
			if !ok {
				return nil, false
			}
			v.set(b)
			l.variants = append(l.variants, v)
		}
		list = append(list, l)
	}
	return list, true
}

// find finds the layers and measures them.
func (t *tuner) find(ctx context.Context, together bool) ([]*layer, error) {
	// Before candidates: constants that only their steps add cannot be selected by name, which is an error of the
	// step.
	bytes, positions, err := measureUnchanged(ctx, t)
	if err != nil {
		return nil, err
	}
	found := &finder{of: map[string]*layer{}, positions: positions}
	for i, c := range t.Candidates {
		var failed string
		if err := t.recordFailure(ctx, found.collect(ctx, t, i, c), &failed); err != nil {
			return nil, err
		}
		if failed != "" {
			t.search.LeftOut = append(t.search.LeftOut, pass.LeftOut{Method: c.Name, Error: failed})
		}
	}
	found.assignCompanions()
	if len(found.list) == 0 {
		why := "no candidate supports any of the weights"
		if found.inner {
			why = "candidates support weights of subgraphs and functions only, which are not measured; --method quantizes them"
		}
		return nil, &Unreachable{why + t.leftOut()}
	}
	list := found.list
	// The list is kept: the process that puts the measurements together need not build the candidates, with their
	// calibration, for the names of weights.
	if together {
		list = mergeSmall(list)
	} else if _, err := ir.Once(ctx, t.Journal, foundUnit, true, func() ([]byte, error) {
		return json.Marshal(t.sensitivities(list))
	}); err != nil {
		return nil, err
	}
	return list, t.measureAll(ctx, list, bytes, found.costs(list))
}

// measureUnchanged is the file size without any candidate, and the constants that a candidate's step can select: the
// number of nodes before their first consumers.
func measureUnchanged(ctx context.Context, t *tuner) (bytes int64, positions map[string]int, err error) {
	plain, err := t.build(ctx, t.Prefix)
	if err != nil {
		return 0, nil, err
	}
	positions = map[string]int{}
	nodes := 0
	for g := range plain.Model.Graphs() {
		for n := range g.Nodes() {
			for _, v := range n.Inputs() {
				if v == nil || v.Const == nil {
					continue
				}
				if _, ok := positions[v.Name]; !ok {
					positions[v.Name] = nodes
				}
			}
			nodes++
		}
	}
	return t.size(plain), positions, plain.close()
}

// costs are the estimated costs of measuring the variants of layers, in nodes that are run: the source up to the layer,
// and each variant from there on. Building and opening a variant takes about as long as a third of a run.
func (f *finder) costs(layers []*layer) []int64 {
	last := 0
	for _, at := range f.positions {
		last = max(last, at)
	}
	costs := make([]int64, len(layers))
	for i, l := range layers {
		at := f.positions[l.names[0]]
		// A layer is one unit of the division: its variants need the same activations, up to which each process would
		// run the source.
		costs[i] = int64(at + len(l.variants)*(last+last/3-at))
	}
	return costs
}

// measureAll measures each variant of each layer, with estimated costs for the layers. The file without any candidate
// has the given number of bytes.
func (t *tuner) measureAll(ctx context.Context, layers []*layer, bytes int64, costs []int64) error {
	t.sensitivityRuns = t.spread(t.samples(layers))
	m := &measurer{tuner: t, bytes: bytes}
	a := &prefetcher{todo: m.pending(layers, ir.Mine(t.Journal, costs)), worker: t.Workers > 1,
		open: func(v measurement) variantModel {
			return m.openVariant(ctx, v)
		}}
	measure := func() (err error) {
		// Only if there is something to measure: a process whose results are all known opens no source.
		if m.baseline == nil {
			if m.baseline, err = t.openBaseline(ctx); err != nil {
				return &verify.SideError{Side: verify.First, Err: err}
			}
		}
		o := a.take()
		if o.err != nil {
			return o.err
		}
		defer o.close()
		return m.variant(ctx, o)
	}
	for _, l := range layers {
		t.all += len(l.variants)
	}
	err := ir.Each(t.Journal, costs, func(i int, mine bool) error {
		l := layers[i]
		// Also for layers of other processes: the number tells which activations are of the layer before.
		m.baseline.next()
		for j := range l.variants {
			v := &l.variants[j]
			unit := unitOf(t.Candidates, l, v)
			if err := v.once(ctx, t.Journal, unit, mine, func() error {
				return t.recordFailure(ctx, measure(), &v.failed)
			}); err != nil {
				return err
			}
			t.progress(strings.TrimPrefix(unit, unitPrefix))
		}
		return nil
	})
	return errors.Join(err, a.close(), m.baseline.close())
}

// unitPrefix begins the names of the units of measurements.
const unitPrefix = "sensitivity, "

// unitOf is the name of the unit of a variant of a layer.
func unitOf(candidates []Candidate, l *layer, v *variant) string {
	return unitPrefix + candidates[v.candidate].Name + " of " + l.names[0]
}

// once sets the measurements of a variant: those of an interrupted search, or what measure sets.
func (v *variant) once(ctx context.Context, j ir.Journal, unit string, mine bool, measure func() error) error {
	b, err := ir.Once(ctx, j, unit, mine, func() ([]byte, error) {
		err := measure()
		if v.failed != "" {
			// Not chosen whatever it saves.
			v.sensitivity = maxSensitivity
		}
		b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(v.bytes)),
			math.Float64bits(v.sensitivity))
		return append(b, v.failed...), err
	})
	if err != nil {
		return err
	}
	v.set(b)
	return nil
}

// set sets the measurements as they are encoded in the journal.
func (v *variant) set(b []byte) {
	v.bytes, v.sensitivity, v.failed = int64(binary.LittleEndian.Uint64(b)),
		math.Float64frombits(binary.LittleEndian.Uint64(b[8:])), string(b[16:])
}

var measures = map[bool]string{false: "noise", true: "divergence"}

// byScores reports whether all gates are about classes.
func (t *tuner) byScores() bool {
	for _, g := range t.Gates {
		if g.Name == "min-sqnr" || g.Name == "min-cosine" || g.Name == metricGate && !t.Metric.OfClasses() {
			return false
		}
	}
	return len(t.Gates) > 0
}

// Sensitivity is measured on few samples if there are many variants: the total number of bytes read and computed is
// bounded, with computed bytes weighted higher.
const (
	minSamples, most = 2, 128
	measurableBytes  = 128 << 30
	computeCost      = 8 // cost of a computed byte relative to a byte of weights
)

// samples is the number of sensitivity samples.
func (t *tuner) samples(layers []*layer) int {
	// Each run reads all weights and computes all values: their product with the number of variants is what is
	// bounded.
	weights, runs := int64(0), 0
	for _, l := range layers {
		weights += l.bytes
		runs += len(l.variants)
	}
	n := int64(measurableBytes) / max(1, (weights+computeCost*t.perRun)*int64(max(1, runs)))
	return int(min(most, max(minSamples, n)))
}

// finder collects layers by the names of weights.
type finder struct {
	list          []*layer
	of            map[string]*layer
	positions     map[string]int // of constants that exist before a candidate's step
	companionRows []companion
	inner         bool // candidates change weights of subgraphs or functions, which are no layers
}

// A companion is a weight that a candidate changes without making it smaller.
type companion struct {
	name      string
	consumers []string
	candidate int
}

// collect adds the weights that candidate i changes in the whole model. Constants that its step adds, such as the bias
// of a folded Add, follow the weight of their layer.
func (f *finder) collect(ctx context.Context, t *tuner, i int, c Candidate) error {
	// The calibration of a candidate: later steps, of single weights, may reuse its results.
	step, err := c.Step(nil, First, t.calibrate)
	if err != nil {
		return err
	}
	b, err := t.build(ctx, append(slices.Clone(t.Prefix), step))
	if err != nil {
		return err
	}
	defer b.close()
	// All models of the search are raised to it, so that they can share activations.
	t.opset = max(t.opset, b.Model.Opset(""))
	for _, row := range b.rows {
		if row.Status != pass.Changed || row.Method != step.Method().Name {
			continue
		}
		if row.Scope != "" {
			f.inner = true // samples may not run its branch: equal outputs would be no evidence
			continue
		}
		if _, selectable := f.positions[row.Tensor]; selectable {
			f.add(row, i)
		}
	}
	return nil
}

// add adds a ledger row of candidate i. Weights that share a payload are one layer for all candidates.
func (f *finder) add(row pass.Row, i int) {
	bytes := int64(0)
	for _, p := range row.After {
		bytes += p.Bytes()
	}
	// Such as the int32 bias of a quantized layer: it changes with the weight, and saves nothing itself.
	if bytes >= row.Before.Bytes() {
		f.companionRows = append(f.companionRows, companion{row.Tensor, row.Consumers, i})
		return
	}
	l := f.of[row.Tensor]
	if l == nil {
		l = &layer{names: []string{row.Tensor}, consumers: row.Consumers, module: row.Module, bytes: row.Before.Bytes()}
		f.of[row.Tensor] = l
		f.list = append(f.list, l)
	}
	// Separately compressed, two names of one payload would be stored twice.
	if with := f.of[row.SharedWith]; row.SharedWith != "" && with != nil && with != l {
		f.merge(with, l)
		l = with
	}
	// Of weights with one payload the first row has its bytes.
	if k := slices.IndexFunc(l.variants, func(v variant) bool { return v.candidate == i }); k >= 0 {
		return // payload already counted
	}
	l.variants = append(l.variants, variant{candidate: i, bytes: bytes})
}

// assignCompanions adds companions to the first layer that shares a consumer with them.
func (f *finder) assignCompanions() {
	for _, r := range f.companionRows {
		for _, l := range f.list {
			if f.of[r.name] == nil && slices.ContainsFunc(r.consumers, func(c string) bool {
				return slices.Contains(l.consumers, c)
			}) {
				if l.companions == nil {
					l.companions = map[int][]string{}
				}
				l.companions[r.candidate] = append(l.companions[r.candidate], r.name)
				break
			}
		}
	}
}

// merge merges two layers.
func (f *finder) merge(to, from *layer) {
	to.names = append(to.names, from.names...)
	to.consumers = append(to.consumers, from.consumers...)
	for _, v := range from.variants {
		if !slices.ContainsFunc(to.variants, func(w variant) bool { return w.candidate == v.candidate }) {
			to.variants = append(to.variants, v)
		}
	}
	for _, name := range from.names {
		f.of[name] = to
	}
	f.list = slices.DeleteFunc(f.list, func(l *layer) bool { return l == from })
}

// only are globs that match exactly these names, except that a comma matches any character.
func only(names []string) pass.Globs {
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `,`, `?`)
	var gs pass.Globs
	for _, name := range names {
		g := escape.Replace(name)
		if strings.HasPrefix(g, "op:") {
			g = `\` + g
		}
		gs = append(gs, g)
	}
	return gs
}

// sensitivities are the layers for the report, sorted by decreasing minimum sensitivity.
func (t *tuner) sensitivities(layers []*layer) []pass.Sensitivity {
	var list []pass.Sensitivity
	for _, l := range layers {
		s := pass.Sensitivity{Tensors: l.names, Consumers: l.consumers, Module: l.module, Bytes: l.bytes}
		for _, v := range l.variants {
			s.Variants = append(s.Variants, pass.Variant{Method: t.Candidates[v.candidate].Name, Bytes: v.bytes,
				Sensitivity: v.sensitivity, Error: v.failed})
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b pass.Sensitivity) int { return cmp.Compare(worst(b), worst(a)) })
	return list
}

func worst(s pass.Sensitivity) float64 {
	w := 0.0
	for _, v := range s.Variants {
		w = max(w, v.Sensitivity)
	}
	return w
}

package tune

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/metric"
	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// none is the candidate of an unchanged layer.
const none = -1

// A choice is a candidate for each layer.
type choice []int

// choose searches along the Pareto front. Sensitivities are assumed additive for the order; the gates are evaluated on
// the whole model.
func (t *tuner) choose(ctx context.Context) ([]pass.Options, error) {
	layers, err := t.layers(ctx, true)
	if err != nil {
		return nil, err
	}
	choices := paretoFront(layers)
	// The front assumes that sensitivities add up. What it leaves out for that is tried afterwards: one method for
	// all weights, and single changes of the best choice.
	if t.Bytes > 0 {
		err = t.largest(ctx, layers, choices)
	} else if err = t.smallest(ctx, layers, choices); err == nil {
		err = errors.Join(t.trySingleCandidates(ctx, layers), t.polish(ctx, layers))
	}
	if err != nil {
		return nil, err
	}
	t.recordChoice(layers)
	return t.steps(layers, t.best, Final)
}

// smallest finds the first of choices that holds the gates, by bisection: larger ones are assumed less sensitive.
func (t *tuner) smallest(ctx context.Context, layers []*layer, choices []choice) error {
	// Nine trials at most, as the front has up to 512 points.
	for lo, hi := 0, len(choices); lo < hi; {
		mid := (lo + hi) / 2
		ok, err := t.try(ctx, layers, choices[mid], nth(mid, choices), math.MaxInt64)
		if err != nil {
			return err
		}
		if ok {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	// The choice that changes nothing holds all gates: a search that ends there found nothing.
	if t.best == nil || !slices.ContainsFunc(t.best, func(candidate int) bool { return candidate != none }) {
		return &Unreachable{t.nearest()}
	}
	return nil
}

func nth(i int, choices []choice) string {
	return fmt.Sprintf("point %d of %d on the Pareto front, by size", i+1, len(choices))
}

// largest tries the last of choices with a file size of at most Bytes, and where it cannot be run those before it.
func (t *tuner) largest(ctx context.Context, layers []*layer, choices []choice) error {
	bytes, err := t.sizeOf(ctx, layers, choices[0])
	for ; err == nil && bytes == math.MaxInt64 && len(choices) > 1; bytes, err = t.sizeOf(ctx, layers, choices[0]) {
		// The smallest one that can be built is the one to compare with the target.
		choices = choices[1:]
	}
	if err == nil && bytes > t.Bytes {
		err = &Unreachable{fmt.Sprintf("the smallest file of the candidates is %s bytes; the target is %s",
			humanize.Comma(bytes), humanize.Comma(t.Bytes))}
	}
	if err != nil {
		return err
	}
	// The largest file within the target: it is the least sensitive one of the front.
	lo, hi := 0, len(choices)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		bytes, err := t.sizeOf(ctx, layers, choices[mid])
		if err != nil {
			return err
		}
		if bytes <= t.Bytes {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	what := fmt.Sprintf("minimum sensitivity within %s bytes", humanize.Comma(t.Bytes))
	for ; lo >= 0; lo-- {
		if _, err := t.try(ctx, layers, choices[lo], what, math.MaxInt64); err != nil {
			return err
		}
		t.search.Chosen = len(t.search.Trials) - 1
		last := &t.search.Trials[t.search.Chosen]
		if last.Error == "" {
			t.best = choices[lo]
			return nil
		}
		what = fmt.Sprintf("%s, within %s bytes", nth(max(0, lo-1), choices), humanize.Comma(t.Bytes))
	}
	return &Unreachable{fmt.Sprintf("none of the combinations within %s bytes can be run: %s", humanize.Comma(t.Bytes),
		t.search.Trials[t.search.Chosen].Error)}
}

// trySingleCandidates tries each candidate for all weights that it supports, if smaller: shared costs, such as a raised
// opset, count once.
func (t *tuner) trySingleCandidates(ctx context.Context, layers []*layer) error {
	for k, candidate := range t.Candidates {
		// Layers that the candidate does not support stay as they are.
		c := make(choice, len(layers))
		for i, l := range layers {
			c[i] = l.variantOf(k).candidate
		}
		if err := t.trySmaller(ctx, layers, c, candidate.Name+" alone"); err != nil {
			return err
		}
	}
	return nil
}

// trySmaller tries a choice that has not failed yet, if its file is smaller than the best.
func (t *tuner) trySmaller(ctx context.Context, layers []*layer, c choice, what string) error {
	if t.repeats(layers, c) {
		return nil
	}
	_, err := t.try(ctx, layers, c, what, t.search.Trials[t.search.Chosen].Bytes)
	return err
}

// repeats reports whether a choice with bit-identical bytes and sensitivity of every layer failed already: candidates
// that differ only in the block size are equal for short columns.
func (t *tuner) repeats(layers []*layer, c choice) bool {
	return slices.ContainsFunc(t.failed, func(f choice) bool {
		for i, l := range layers {
			if v, w := l.variantOf(c[i]), l.variantOf(f[i]); v.bytes != w.bytes || v.sensitivity != w.sensitivity {
				return false
			}
		}
		return true
	})
}

// maxPolishTrials bounds the trials of polish. Where counts of samples decide, a choice off the front may hold by
// chance: it must save at least a twentieth of the file.
const (
	maxPolishTrials  = 24
	minSavingDivisor = 20
)

// polish tries smaller variants layer by layer, in order of increasing sensitivity per byte saved.
func (t *tuner) polish(ctx context.Context, layers []*layer) error {
	type saving struct {
		layer, to int
		cost      float64 // sensitivity per byte
	}
	var list []saving
	for i, l := range layers {
		now := l.variantOf(t.best[i])
		for _, v := range l.variants {
			if saved := now.bytes - v.bytes; saved > 0 &&
				(!t.byScores() || saved*minSavingDivisor > t.search.Trials[t.search.Chosen].Bytes) {
				list = append(list, saving{i, v.candidate, (v.sensitivity - now.sensitivity) / float64(now.bytes-v.bytes)})
			}
		}
	}
	// Stable, so that equal costs have the order of layers: the number of trials is bounded, and which ones are made
	// must not vary.
	slices.SortStableFunc(list, func(a, b saving) int { return cmp.Compare(a.cost, b.cost) })
	for _, s := range list[:min(len(list), maxPolishTrials)] {
		if layers[s.layer].variantOf(s.to).bytes >= layers[s.layer].variantOf(t.best[s.layer]).bytes {
			continue // a smaller variant holds already
		}
		c := slices.Clone(t.best)
		c[s.layer] = s.to
		if err := t.trySmaller(ctx, layers, c, fmt.Sprintf("also %s of %s", t.Candidates[s.to].Name,
			layers[s.layer].names[0])); err != nil {
			return err
		}
	}
	return nil
}

// variantOf returns the variant of a candidate.
func (l *layer) variantOf(candidate int) variant {
	for _, v := range l.variants {
		if v.candidate == candidate {
			return v
		}
	}
	return variant{candidate: none, bytes: l.bytes}
}

// steps are the steps of a choice.
func (t *tuner) steps(layers []*layer, c choice, phase Phase) ([]pass.Options, error) {
	steps := slices.Clone(t.Prefix)
	for k, candidate := range t.Candidates {
		var names []string
		for i, l := range layers {
			if c[i] == k {
				names = append(names, l.weights(k)...)
			}
		}
		if names == nil {
			continue
		}
		s, err := candidate.Step(only(names), phase, t.calibrate)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// sizeOf is the file size of a choice in bytes; that of a choice that cannot be built, which the search names as left
// out, is above any target.
func (t *tuner) sizeOf(ctx context.Context, layers []*layer, c choice) (int64, error) {
	b, err := t.buildChoice(ctx, layers, c)
	if err != nil {
		var failed string
		err = t.recordFailure(ctx, err, &failed)
		if left := (pass.LeftOut{Method: t.describe(c), Error: failed}); failed != "" &&
			!slices.Contains(t.search.LeftOut, left) {
			t.search.LeftOut = append(t.search.LeftOut, left)
		}
		return math.MaxInt64, err
	}
	defer b.close()
	return t.size(b), nil
}

// describe lists the candidates of a choice with the numbers of layers that they are for.
func (t *tuner) describe(c choice) string {
	var parts []string
	for k, candidate := range t.Candidates {
		n := 0
		for _, of := range c {
			if of == k {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d × %s", n, candidate.Name))
		}
	}
	return strings.Join(parts, ", ")
}

func (t *tuner) buildChoice(ctx context.Context, layers []*layer, c choice) (*builtModel, error) {
	steps, err := t.steps(layers, c, Trying)
	if err != nil {
		return nil, err
	}
	return t.build(ctx, steps)
}

// A trialResult is a trial, the gates on it, and the counts of its runs; nil if the file is too large for one.
type trialResult struct {
	Trial  *pass.Trial
	Gates  []report.Gate
	Counts []metric.Count
}

// try evaluates a choice if its file is smaller than the given size, and reports whether it holds the gates. It records
// the smallest that does.
func (t *tuner) try(ctx context.Context, layers []*layer, c choice, what string, below int64) (held bool, err error) {
	// The number is part of the name: trials of equal choices are made in the same order in each run, also after an
	// interruption.
	text, err := ir.Once(ctx, t.Journal, fmt.Sprintf("trial %d, %s", t.tries, what), ir.Mine(t.Journal, []int64{1})[0],
		func() ([]byte, error) {
			r, err := t.trial(ctx, layers, c, what, below)
			var failed string
			if err := t.recordFailure(ctx, err, &failed); err != nil {
				return nil, err
			}
			if failed != "" {
				r = trialResult{Trial: &pass.Trial{What: what, Error: failed}}
			}
			return json.Marshal(r)
		})
	if err != nil {
		return false, err
	}
	t.tries++
	var r trialResult
	if err := bounded.JSON(text, &r); err != nil || r.Trial == nil {
		return false, err
	}
	// From the journal as from a trial, so that an interrupted search goes on with the same trials.
	t.screen.learn(r.Counts)
	if held = r.Trial.Accepted; !held {
		t.missedGates, t.failed = r.Gates, append(t.failed, c)
	}
	t.search.Trials = append(t.search.Trials, *r.Trial)
	if last := len(t.search.Trials) - 1; held && t.Bytes == 0 &&
		(t.best == nil || r.Trial.Bytes < t.search.Trials[t.search.Chosen].Bytes) {
		t.best, t.search.Chosen = c, last
	}
	t.progress(what)
	return held, nil
}

// trial runs the model of a choice on all samples and evaluates the gates.
func (t *tuner) trial(ctx context.Context, layers []*layer, c choice, what string, below int64) (trialResult, error) {
	b, err := t.buildChoice(ctx, layers, c)
	if err != nil {
		return trialResult{}, err
	}
	defer b.close()
	bytes := t.size(b)
	// Before it is opened: a choice that is not smaller is of no use, whatever its gates.
	if bytes >= below {
		return trialResult{}, nil
	}
	s, err := t.session(ctx, b.Model)
	if err != nil {
		return trialResult{}, err
	}
	defer s.Close()
	trial := &pass.Trial{What: what, Bytes: bytes}
	// The samples that earlier trials lost come first: on magika 17 of 27 trials end after 2 to 40 of 103 samples,
	// with the same choices.
	if trial.Ended, err = t.screenTrial(ctx, s); err != nil || trial.Ended > 0 {
		return trialResult{Trial: trial}, err
	}
	trialCounts := t.newTrialCounts()
	r, err := verify.Compare(ctx, t.outputs.rewind(), s, t.set, verify.Options{
		Batch: t.Data.Batch, Scores: t.Scores, Fitted: t.calibration, Parallel: t.concurrent, Metric: t.Metric,
		Counted: trialCounts.add,
	})
	if errors.Is(err, errMissed) {
		trial.Ended = len(trialCounts.counts) * t.batch()
		return trialResult{Trial: trial, Counts: trialCounts.counts}, nil
	}
	if err != nil {
		return trialResult{}, err
	}
	gates, err := report.EvaluateGates(r, t.Gates)
	if err != nil {
		return trialResult{}, err
	}
	certain, err := t.holdsWithMargin(r)
	if err != nil {
		return trialResult{}, err
	}
	trial.Accepted = report.Passed(gates) && certain
	if w := r.Worst(); w != nil && w.Errors != nil {
		trial.SQNR = w.Errors.SQNR
	}
	if a := r.Accuracy; a != nil && a.Before != nil {
		// Rounded as in reports.
		drop := math.Round((*a.Before-a.After)*1e9) / 1e9
		trial.Drop = &drop
	}
	if m := r.Metric; m != nil && !math.IsNaN(m.Drop()) {
		drop := math.Round(m.Drop()*1e9) / 1e9
		trial.MetricDrop = &drop
	}
	return trialResult{trial, gates, trialCounts.counts}, nil
}

// recordChoice records the chosen method of each layer in the search.
func (t *tuner) recordChoice(layers []*layer) {
	method := map[string]string{}
	for i, l := range layers {
		if t.best[i] != none {
			method[l.names[0]] = t.Candidates[t.best[i]].Name
		}
	}
	for i := range t.search.Layers {
		t.search.Layers[i].Method = method[t.search.Layers[i].Tensors[0]]
	}
}

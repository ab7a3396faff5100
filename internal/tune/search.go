package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/internal/verify"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// none is the candidate of a layer that stays as it is.
const none = -1

// A choice is a candidate for each layer.
type choice []int

// choose looks along the front of choices. Damages are taken to add up for the order; whether a choice holds is measured on the whole of it.
func (t *tuner) choose(ctx context.Context) ([]pass.Options, error) {
	layers, err := t.layers(ctx, true)
	if err != nil {
		return nil, err
	}
	choices := front(layers)
	if t.Bytes > 0 {
		err = t.largest(ctx, layers, choices)
	} else if err = t.smallest(ctx, layers, choices); err == nil {
		err = errors.Join(t.alone(ctx, layers), t.polish(ctx, layers))
	}
	if err != nil {
		return nil, err
	}
	t.chosen(layers)
	return t.steps(layers, t.best, Final)
}

// smallest finds the first of choices that holds the gates, by halving: larger ones are taken to do less damage.
func (t *tuner) smallest(ctx context.Context, layers []*layer, choices []choice) error {
	for lo, hi := 0, len(choices); lo < hi; {
		mid := (lo + hi) / 2
		ok, err := t.try(ctx, layers, choices[mid], nth(mid, choices))
		if err != nil {
			return err
		}
		if ok {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if t.best == nil || !slices.ContainsFunc(t.best, func(candidate int) bool { return candidate != none }) {
		return &Unreachable{t.nearest()}
	}
	return nil
}

func nth(i int, choices []choice) string {
	return fmt.Sprintf("the choice of least damage that is number %d of %d by size", i+1, len(choices))
}

// largest tries the last of choices whose file takes no more than Bytes.
func (t *tuner) largest(ctx context.Context, layers []*layer, choices []choice) error {
	bytes, err := t.size(ctx, layers, choices[0])
	if err == nil && bytes > t.Bytes {
		err = &Unreachable{fmt.Sprintf("the smallest file that the candidates make takes %s bytes, and %s are asked for", humanize.Comma(bytes), humanize.Comma(t.Bytes))}
	}
	if err != nil {
		return err
	}
	lo, hi := 0, len(choices)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		bytes, err := t.size(ctx, layers, choices[mid])
		if err != nil {
			return err
		}
		if bytes <= t.Bytes {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	t.best = choices[lo]
	_, err = t.try(ctx, layers, t.best, fmt.Sprintf("the least damage within %s bytes", humanize.Comma(t.Bytes)))
	t.search.Chosen = len(t.search.Trials) - 1
	return err
}

// alone tries each candidate for all that it takes, where that is smaller: what its weights have in common, such as another opset, counts once.
func (t *tuner) alone(ctx context.Context, layers []*layer) error {
	for k, candidate := range t.Candidates {
		c := make(choice, len(layers))
		for i, l := range layers {
			c[i] = l.as(k).candidate
		}
		if err := t.better(ctx, layers, c, candidate.Name+" alone"); err != nil {
			return err
		}
	}
	return nil
}

// better tries a choice that did not fail yet, if its file is smaller than the best.
func (t *tuner) better(ctx context.Context, layers []*layer, c choice, what string) error {
	if t.repeats(layers, c) {
		return nil
	}
	b, err := t.made(ctx, layers, c)
	if err != nil {
		return err
	}
	defer b.close()
	if b.size() < t.search.Trials[t.search.Chosen].Bytes {
		_, err = t.judge(ctx, b, c, what)
	}
	return err
}

// repeats reports whether a choice failed already that stores every layer in as many bytes and with the same damage, to the last bit: candidates
// that differ in the size of blocks alone are the same where columns are short.
func (t *tuner) repeats(layers []*layer, c choice) bool {
	return slices.ContainsFunc(t.failed, func(f choice) bool {
		for i, l := range layers {
			if v, w := l.as(c[i]), l.as(f[i]); v.bytes != w.bytes || v.damage != w.damage {
				return false
			}
		}
		return true
	})
}

// mostPolished bounds the trials that polishing takes. Where counts of samples decide, a choice off the front may hold by luck: it must be
// worth that, a twentieth of the file.
const (
	mostPolished = 24
	worthLuck    = 20
)

// polish tries smaller variants of one layer after another, those first that do the least damage for the bytes that they save.
func (t *tuner) polish(ctx context.Context, layers []*layer) error {
	type saving struct {
		layer, to int
		cost      float64 // damage by the byte
	}
	var list []saving
	for i, l := range layers {
		now := l.as(t.best[i])
		for _, v := range l.variants {
			if saved := now.bytes - v.bytes; saved > 0 && (!t.byScores() || saved*worthLuck > t.search.Trials[t.search.Chosen].Bytes) {
				list = append(list, saving{i, v.candidate, (v.damage - now.damage) / float64(now.bytes-v.bytes)})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b saving) int { return cmp.Compare(a.cost, b.cost) })
	for _, s := range list[:min(len(list), mostPolished)] {
		if layers[s.layer].as(s.to).bytes >= layers[s.layer].as(t.best[s.layer]).bytes {
			continue // a smaller one holds already
		}
		c := slices.Clone(t.best)
		c[s.layer] = s.to
		if err := t.better(ctx, layers, c, fmt.Sprintf("%s of %s too", t.Candidates[s.to].Name, layers[s.layer].names[0])); err != nil {
			return err
		}
	}
	return nil
}

// as is the variant of a candidate.
func (l *layer) as(candidate int) variant {
	for _, v := range l.variants {
		if v.candidate == candidate {
			return v
		}
	}
	return variant{candidate: none, bytes: l.bytes}
}

// steps are those that store the layers as c says.
func (t *tuner) steps(layers []*layer, c choice, phase Phase) ([]pass.Options, error) {
	steps := slices.Clone(t.Prefix)
	for k, candidate := range t.Candidates {
		var names []string
		for i, l := range layers {
			if c[i] == k {
				names = append(names, l.taken(k)...)
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

// size is the bytes of the file of a choice.
func (t *tuner) size(ctx context.Context, layers []*layer, c choice) (int64, error) {
	b, err := t.made(ctx, layers, c)
	if err != nil {
		return 0, err
	}
	defer b.close()
	return b.size(), nil
}

func (t *tuner) made(ctx context.Context, layers []*layer, c choice) (*built, error) {
	steps, err := t.steps(layers, c, Trying)
	if err != nil {
		return nil, err
	}
	return t.build(ctx, steps)
}

// try makes the model of a choice, and judges it.
func (t *tuner) try(ctx context.Context, layers []*layer, c choice, what string) (bool, error) {
	b, err := t.made(ctx, layers, c)
	if err != nil {
		return false, err
	}
	defer b.close()
	return t.judge(ctx, b, c, what)
}

// judge runs the model of a choice on all samples and judges the gates. The smallest that holds them is kept in mind.
func (t *tuner) judge(ctx context.Context, b *built, c choice, what string) (bool, error) {
	s, err := t.session(ctx, b.Model)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	defer s.Close()
	r, err := verify.Compare(ctx, t.answers.rewind(), s, t.set, verify.Options{Batch: t.Data.Batch, Scores: t.Scores, Seen: t.seen, AtOnce: t.atOnce})
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	gates, err := report.Judge(r, t.Gates)
	if err != nil {
		return false, err
	}
	held := report.Passed(gates) && t.sure(r.Accuracy)
	trial := pass.Trial{What: what, Bytes: b.size(), Accepted: held}
	if !held {
		t.missed, t.failed = gates, append(t.failed, c)
	}
	if w := r.Worst(); w != nil && w.Errors != nil {
		trial.SQNR = w.Errors.SQNR
	}
	if a := r.Accuracy; a != nil && a.Before != nil {
		drop := math.Round((*a.Before-a.After)*1e9) / 1e9
		trial.Drop = &drop
	}
	t.search.Trials = append(t.search.Trials, trial)
	if last := len(t.search.Trials) - 1; held && t.Bytes == 0 && (t.best == nil || trial.Bytes < t.search.Trials[t.search.Chosen].Bytes) {
		t.best, t.search.Chosen = c, last
	}
	t.tell(what)
	return held, nil
}

// chosen says in the search what became of each layer.
func (t *tuner) chosen(layers []*layer) {
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

package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
	"github.com/mcompress/mcompress/verify"
)

// none is the candidate of a layer that stays as it is.
const none = -1

// A choice is a candidate for each layer.
type choice []int

// A move changes one layer to a variant that does less damage and takes more bytes.
type move struct {
	layer, to int
	gain      float64 // damage that goes, by the byte
}

// choose goes along the moves that take the most damage for the fewest bytes, from all layers at their smallest to none changed. Damages
// are taken to add up for the order of moves; whether a choice holds is measured on the whole of it.
func (t *tuner) choose(ctx context.Context) ([]pass.Step, error) {
	layers, err := t.layers(ctx)
	if err != nil {
		return nil, err
	}
	start, moves := path(layers)
	at := func(k int) choice {
		c := slices.Clone(start)
		for _, m := range moves[:k] {
			c[m.layer] = m.to
		}
		return c
	}
	k := 0
	if t.Bytes > 0 {
		k, err = t.largest(ctx, layers, at, len(moves))
	} else {
		k, err = t.smallest(ctx, layers, at, len(moves))
	}
	if err != nil {
		return nil, err
	}
	if t.Bytes > 0 {
		t.best = at(k)
		_, err = t.try(ctx, layers, t.best, fmt.Sprintf("the most moves within %s bytes", humanize.Comma(t.Bytes)))
		t.search.Chosen = len(t.search.Trials) - 1
	} else {
		err = t.polish(ctx, layers)
	}
	if err != nil {
		return nil, err
	}
	t.chosen(layers)
	return t.steps(layers, t.best, Final)
}

// path is the smallest choice and the moves away from it, along the lower convex hull of bytes and damage of each layer, the
// best ones first.
func path(layers []*layer) (choice, []move) {
	start := make(choice, len(layers))
	var moves []move
	for i, l := range layers {
		points := append(slices.Clone(l.variants), variant{candidate: none, bytes: l.bytes})
		slices.SortStableFunc(points, func(a, b variant) int {
			return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.damage, b.damage))
		})
		at := points[0]
		start[i] = at.candidate
		for {
			next, gain := variant{}, 0.0
			for _, p := range points {
				if p.bytes <= at.bytes || p.damage >= at.damage {
					continue
				}
				if g := (at.damage - p.damage) / float64(p.bytes-at.bytes); g > gain {
					next, gain = p, g
				}
			}
			if gain == 0 {
				break
			}
			moves = append(moves, move{i, next.candidate, gain})
			at = next
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(b.gain, a.gain) })
	return start, moves
}

// smallest finds the fewest moves after which the gates hold, by halving: more moves are taken to do less damage.
func (t *tuner) smallest(ctx context.Context, layers []*layer, at func(int) choice, n int) (int, error) {
	lo, hi := 0, n+1                                         // hi holds, or is one too many
	for mid := 0; lo < hi && mid <= n; mid = (lo + hi) / 2 { // the smallest may do
		ok, err := t.try(ctx, layers, at(mid), fmt.Sprintf("%d of %d moves", mid, n))
		if err != nil {
			return 0, err
		}
		if ok {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if t.best == nil {
		return 0, errors.New("no combination holds the gates, not even that with the least damage")
	}
	return hi, nil
}

// largest is the most moves whose file takes no more than Bytes.
func (t *tuner) largest(ctx context.Context, layers []*layer, at func(int) choice, n int) (int, error) {
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi + 1) / 2
		bytes, err := t.size(ctx, layers, at(mid))
		if err != nil {
			return 0, err
		}
		if bytes <= t.Bytes {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	bytes, err := t.size(ctx, layers, at(lo))
	if err == nil && bytes > t.Bytes {
		err = fmt.Errorf("the smallest file that the candidates make takes %s bytes, and %s are asked for", humanize.Comma(bytes), humanize.Comma(t.Bytes))
	}
	return lo, err
}

// mostPolished bounds the trials that polishing takes.
const mostPolished = 24

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
			if v.bytes < now.bytes {
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
		if _, err := t.try(ctx, layers, c, fmt.Sprintf("%s of %s too", t.Candidates[s.to].Name, layers[s.layer].names[0])); err != nil {
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
func (t *tuner) steps(layers []*layer, c choice, phase Phase) ([]pass.Step, error) {
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
		s, err := candidate.Step(only(names), phase)
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

// try runs a choice on all samples and judges the gates. The smallest that holds them is kept in mind.
func (t *tuner) try(ctx context.Context, layers []*layer, c choice, what string) (bool, error) {
	b, err := t.made(ctx, layers, c)
	if err != nil {
		return false, err
	}
	defer b.close()
	s, err := t.session(ctx, b.Model)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	defer s.Close()
	r, err := verify.Compare(ctx, t.answers.rewind(), s, t.set, verify.Options{Batch: t.Data.Batch, Scores: t.Scores})
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	gates, err := report.Judge(r, t.Gates)
	if err != nil {
		return false, err
	}
	held := !slices.ContainsFunc(gates, func(g report.Gate) bool { return !g.Held })
	trial := pass.Trial{What: what, Bytes: b.size(), Accepted: held}
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

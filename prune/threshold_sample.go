package prune

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

const (
	// guessFrom is the number of elements from which samples cost less than what they
	// save: counting every element once, and a pass.
	guessFrom = 1 << 26
	samples   = 1 << 16
	// spread is how many standard deviations the bracket reaches to either side: by
	// then the element is inside in all but one of a million cases.
	spread = 5
)

// sampledBracket is the first bracket to search: every key, where sampling does not pay.
func (p *ranking) sampledBracket(ctx context.Context, k int64) (bracket, error) {
	if p.total() < guessFrom || !p.cheap() {
		return p.all(), nil
	}
	return p.bracketOf(ctx, k)
}

// bracketOf is a bracket that most likely holds the element of rank k: the samples around the
// same quantile of a sample. The ranking must have as many elements as the sample.
func (p *ranking) bracketOf(ctx context.Context, k int64) (bracket, error) {
	b := p.all()
	s, err := p.sample(ctx)
	if err != nil {
		return b, err
	}
	fraction := float64(k) / float64(p.total())
	margin := spread*math.Sqrt(samples*fraction*(1-fraction)) + 1
	if i := int(math.Floor(fraction*samples - margin)); i >= 0 {
		b.lo = s[i]
	}
	if i := int(math.Ceil(fraction*samples + margin)); i < samples {
		b.hi = s[i]
	}
	return b, nil
}

// cheap reports whether single elements can be read: a recipe may compute many to give one.
func (p *ranking) cheap() bool {
	return !slices.ContainsFunc(p.tensors, func(t *ir.Tensor) bool {
		_, computed := t.Source.(ir.Output)
		return computed
	})
}

// sample is the keys of elements at pseudorandom places, one in each of as many equal parts,
// sorted.
func (p *ranking) sample(ctx context.Context) ([]uint64, error) {
	const chunks = 64
	s := make([]uint64, samples)
	err := pass.Parallel(ctx, p.step.Env.Workers, chunks, func(ctx context.Context, c int) error {
		part := p.total() / samples
		for i := c * samples / chunks; i < (c+1)*samples/chunks; i++ {
			at := part*int64(i) + int64(scramble(uint64(i))%uint64(part))
			var err error
			if s[i], err = p.key(at); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	slices.Sort(s)
	return s, err
}

// key reads the key of one element.
func (p *ranking) key(at int64) (uint64, error) {
	i, _ := slices.BinarySearch(p.starts, at+1)
	i-- // the last tensor that starts at or before it
	t := p.tensors[i]
	size := t.DType.Bits() / 8
	b := make([]byte, size)
	if err := ir.ReadFull(p.inputs[i], b, (at-p.starts[i])*size); err != nil {
		return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return keyOf(largest(b, t.DType), t.DType, p.wide), nil
}

// scramble is the finalizer of splitmix64: a bijection whose values look random.
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
)

// numbered are n batches.
func numbered(n int) iter.Seq2[*dataset.Batch, error] {
	return func(yield func(*dataset.Batch, error) bool) {
		for i := range n {
			if !yield(&dataset.Batch{First: i}, nil) {
				return
			}
		}
	}
}

// Results of batches are added in order, at most the given number run concurrently, and the first failure in this
// order is the error.
func TestInOrder(t *testing.T) {
	const batches, broken = 40, 30
	for _, n := range []int{0, 1, 3} {
		var running, most atomic.Int64
		var got []int
		start := func(b *dataset.Batch) (func(context.Context) (int, error), error) {
			most.Store(max(most.Load(), running.Add(1)))
			return func(context.Context) (int, error) {
				defer running.Add(-1)
				if b.First >= broken {
					return 0, fmt.Errorf("batch %d", b.First)
				}
				return b.First, nil
			}, nil
		}
		err := InOrder(t.Context(), n, numbered(batches), start, func(b *dataset.Batch, x int) error {
			if b.First != x {
				t.Errorf("batch %d is given what came of %d", b.First, x)
			}
			got = append(got, x)
			return nil
		})
		if err == nil || err.Error() != fmt.Sprintf("batch %d", broken) || len(got) != broken || !slices.IsSorted(got) {
			t.Errorf("%d at once: %v after %v", n, err, got)
		}
		if most.Load() > int64(max(1, n)) {
			t.Errorf("%d at once, want at most %d", most.Load(), max(1, n))
		}
	}
}

// What cannot be added ends it, and nothing runs on.
func TestInOrderEndsWithAnError(t *testing.T) {
	var running atomic.Int64
	full := errors.New("full")
	err := InOrder(t.Context(), 2, numbered(9), func(*dataset.Batch) (func(context.Context) (bool, error), error) {
		running.Add(1)
		return func(context.Context) (bool, error) { running.Add(-1); return true, nil }, nil
	}, func(*dataset.Batch, bool) error { return full })
	if !errors.Is(err, full) || running.Load() != 0 {
		t.Errorf("%v, and %d runs go on", err, running.Load())
	}
}

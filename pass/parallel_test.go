package pass_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

func TestParallelCallsEachIndexOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100} {
		calls := make([]atomic.Int32, n)
		err := pass.Parallel(t.Context(), 3, n, func(_ context.Context, i int) error {
			calls[i].Add(1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Errorf("%d of %d: %d calls", i, n, got)
			}
		}
	}
}

func TestParallelStopsAfterAnError(t *testing.T) {
	const n, workers = 100, 3
	var calls atomic.Int32
	failed := errors.New("failed")
	err := pass.Parallel(t.Context(), workers, n, func(ctx context.Context, i int) error {
		calls.Add(1)
		if i == 0 {
			return failed
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, failed) || calls.Load() > workers {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

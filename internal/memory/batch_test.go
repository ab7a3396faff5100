package memory

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLargestBatchFitsAndTheNextDoesNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fixed := rapid.Int64Range(0, 1<<30).Draw(t, "fixed")
		each := rapid.Int64Range(1, 1<<24).Draw(t, "each")
		budget := rapid.Int64Range(0, 1<<34).Draw(t,
			"budget") / rapid.SampledFrom([]int64{1, 1 << 10, 1 << 20}).Draw(t, "scale")
		if budget/each >= maxBatch {
			return
		}
		measured := 0
		got, size, err := LargestBatch(budget, func(batch int) (int64, error) {
			measured++
			return fixed + each*int64(batch), nil
		})
		want := max(0, int((budget-fixed)/each))
		if err != nil || got != want || size != fixed+each*int64(max(1, want)) || measured > 62 {
			t.Fatalf("got %d, %d bytes, %v after %d questions, want %d", got, size, err, measured, want)
		}
	})
}

func TestLargestBatchIsMeasured(t *testing.T) {
	bytes := func(batch int) (int64, error) { return []int64{0, 10, 20, 15, 40, 35, 60, 50, 80}[batch], nil }
	got, size, err := LargestBatch(55, bytes)
	next, _ := bytes(got + 1)
	if same, _ := bytes(got); err != nil || size != same || size > 55 || next <= 55 {
		t.Errorf("got batch %d of %d bytes, %v, the next one of %d: want one that fits before one that does not", got,
			size, err, next)
	}
}

func TestLargestBatchOfConstantMemory(t *testing.T) {
	_, _, err := LargestBatch(100, func(int) (int64, error) { return 100, nil })
	if err == nil || !strings.Contains(err.Error(), "does not grow") {
		t.Errorf("got %v, want that memory does not grow", err)
	}
}

func TestLargestBatchReturnsErrors(t *testing.T) {
	broken := errors.New("broken")
	for first := 1; first < 10; first++ {
		_, _, err := LargestBatch(8, func(batch int) (int64, error) {
			if batch >= first {
				return 0, broken
			}
			return int64(batch), nil
		})
		if first <= 8 && !errors.Is(err, broken) {
			t.Errorf("from batch %d on: got %v", first, err)
		}
	}
}

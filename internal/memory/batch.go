package memory

import "fmt"

// mostBatch is where a search ends: memory that still fits does not grow with the batch.
const mostBatch = 1 << 30

// LargestBatch returns the largest batch whose bytes are within the budget, and these
// bytes. If not even a batch of 1 fits it returns 0 and the bytes of a batch of 1.
//
// It asks for the bytes of about 2 log(batch) batches: it doubles and then halves the
// distance. That a batch fits and the next one does not was asked and not concluded; that
// no larger batch fits again follows if bytes grow with the batch.
func LargestBatch(budget int64, bytes func(batch int) (int64, error)) (batch int, size int64, err error) {
	size, err = bytes(1)
	if err != nil || size > budget {
		return 0, size, err
	}
	batch = 1
	for tooLarge := 0; tooLarge == 0 || tooLarge-batch > 1; {
		next := 2 * batch
		if tooLarge > 0 {
			next = batch + (tooLarge-batch)/2
		}
		if next > mostBatch {
			return 0, 0, fmt.Errorf("memory: a batch of %d still fits into %d bytes: memory does not grow with the batch", batch, budget)
		}
		n, err := bytes(next)
		if err != nil {
			return 0, 0, err
		}
		if n > budget {
			tooLarge = next
			continue
		}
		batch, size = next, n
	}
	return batch, size, nil
}

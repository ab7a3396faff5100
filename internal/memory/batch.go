package memory

import "fmt"

// maxBatch is the largest batch of the search: if it fits, memory does not grow with the batch.
const maxBatch = 1 << 30

// LargestBatch returns the largest batch whose bytes are within the budget, and these bytes. If not even a batch of 1
// fits it returns 0 and the bytes of a batch of 1.
//
// It calls bytes for about 2 log(batch) batches: a galloping search followed by a binary search. The result and the
// next batch are measured; larger batches are assumed to need more.
func LargestBatch(budget int64, bytes func(batch int) (int64, error)) (batch int, size int64, err error) {
	size, err = bytes(1)
	if err != nil || size > budget {
		return 0, size, err
	}
	batch = 1
	for tooLarge := 0; tooLarge == 0 || tooLarge-batch > 1; {
		next := 2 * batch
		// Doubled until a batch is too large, halved between it and the last that fits from then on.
		if tooLarge > 0 {
			next = batch + (tooLarge-batch)/2
		}
		if next > maxBatch {
			return 0, 0, fmt.Errorf("memory: a batch of %d still fits into %d bytes: memory does not grow with the batch",
				batch, budget)
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

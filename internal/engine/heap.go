package engine

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
)

// A heap counts the results of one program that lie outside of its arena, as only the run tells their sizes. What
// several of them hold, as a sequence and the items that it was made of, counts as often.
type heap struct {
	limit int64 // bytes; 0 for none
	bytes int64
	of    map[int]int64 // by slot
}

// fits is an error if n bytes more are beyond the limit.
func (h *heap) fits(n int64) error {
	if h.limit <= 0 || n <= h.limit-h.bytes {
		return nil
	}
	return fmt.Errorf("its results would take %d bytes, beside %d of others whose size only the run tells; the memory limit is %d", n, h.bytes, h.limit)
}

// foresee is an error if what s will make of c's inputs is beyond the limit, as far as that is known before memory is
// taken.
func (h *heap) foresee(s *step, c *op.Call) error {
	if h.limit <= 0 || s.op.Shape == nil || s.op.View {
		return nil
	}
	specs, err := s.shape(c.In)
	if err != nil {
		return nil // it will be said when s runs
	}
	need := int64(0)
	if s.op.Work != nil {
		if need, err = s.scratch(c.In, c.Pool.Workers()); err != nil {
			return err
		}
	}
	for i, spec := range specs {
		if i >= len(s.out) || s.out[i] == absent {
			continue
		}
		if need += spec.Bytes(); need > h.limit {
			break // before it overflows
		}
	}
	if err := h.fits(need); err != nil {
		return s.wrap(err)
	}
	return nil
}

// take counts n bytes of slot o, which s made.
func (h *heap) take(s *step, o int, n int64) error {
	if h.limit <= 0 {
		return nil
	}
	if err := h.fits(n - h.of[o]); err != nil {
		return s.wrap(err)
	}
	if h.of == nil {
		h.of = map[int]int64{}
	}
	h.bytes += n - h.of[o]
	h.of[o] = n
	return nil
}

// free gives up what was counted of slot o.
func (h *heap) free(o int) {
	h.bytes -= h.of[o]
	delete(h.of, o)
}

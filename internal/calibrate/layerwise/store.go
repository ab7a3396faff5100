package layerwise

import (
	"fmt"
	"os"

	"github.com/mcompress/mcompress/ir"
)

// inMemory is the number of bytes of activations that stay in memory between parts.
const inMemory = 64 << 20

// A store holds activations between parts. Beyond its memory budget they are in a temporary file, so that memory
// does not grow with the number of samples.
type store struct {
	eval *ir.Eval // creates the file
	free int64    // bytes left of the memory budget
	file *os.File
	end  int64             // of the file
	gaps map[int64][]int64 // reusable offsets in the file, by size
}

// A storedActivation is an activation of one sample in a store.
type storedActivation struct {
	*ir.Array       // without data if that is in the file
	at        int64 // offset in the file, -1 if in memory
}

func newStore(eval *ir.Eval, weights int64) *store {
	s := &store{eval: eval, free: inMemory, gaps: map[int64][]int64{}}
	if weights > 0 {
		// A quarter of a limit of memory: weights and the run of a part need the rest.
		s.free = min(s.free, weights/4)
	}
	return s
}

// put stores a, which must not be changed afterwards.
func (s *store) put(a *ir.Array) (storedActivation, error) {
	n := int64(len(a.Data))
	// Other kinds, sequences and texts, have no bytes of a known size in a file.
	if a.Kind == ir.Dense && n > s.free {
		return s.spill(a, n)
	}
	s.free -= n
	return storedActivation{Array: a, at: -1}, nil
}

func (s *store) spill(a *ir.Array, n int64) (storedActivation, error) {
	var err error
	if s.file == nil {
		if s.file, err = s.eval.Temp(); err != nil {
			return storedActivation{}, err
		}
	}
	at := s.place(n)
	if _, err := s.file.WriteAt(a.Data, at); err != nil {
		return storedActivation{}, fmt.Errorf("activations between layers: %w", err)
	}
	return storedActivation{Array: &ir.Array{DType: a.DType, Shape: a.Shape}, at: at}, nil
}

// place allocates n bytes of the file.
func (s *store) place(n int64) int64 {
	// Activations of a model's layers have few sizes: gaps of the same size are reused, and the file stays small.
	if g := s.gaps[n]; len(g) > 0 {
		s.gaps[n] = g[:len(g)-1]
		return g[len(g)-1]
	}
	s.end += n
	return s.end - n
}

// get returns a value with its data.
func (s *store) get(h storedActivation) (*ir.Array, error) {
	if h.at < 0 {
		return h.Array, nil
	}
	a := ir.NewArray(h.DType, h.Shape...)
	return a, ir.ReadFull(s.file, a.Data, h.at)
}

// drop frees a value.
func (s *store) drop(h storedActivation) {
	if h.at < 0 {
		s.free += int64(len(h.Data))
		return
	}
	s.gaps[h.Bytes()] = append(s.gaps[h.Bytes()], h.at)
}

package layerwise

import (
	"fmt"
	"os"

	"github.com/mcompress/mcompress/ir"
)

// inMemory is how many bytes of values stay in memory between parts.
const inMemory = 64 << 20

// A store holds values between parts. What is beyond its room in memory waits in a temporary file, so that memory
// does not grow with the number of samples.
type store struct {
	eval *ir.Eval // makes the file
	room int64    // bytes that may still be in memory
	file *os.File
	end  int64             // of what was ever in the file
	gaps map[int64][]int64 // offsets in it that can be used again, by size
}

// A held is a value of one sample in a store.
type held struct {
	*ir.Array       // without its data if that is in the file
	at        int64 // in the file, -1 for what is not
}

func newStore(eval *ir.Eval, memory int64) *store {
	s := &store{eval: eval, room: inMemory, gaps: map[int64][]int64{}}
	if memory > 0 {
		s.room = min(s.room, memory/8)
	}
	return s
}

// put takes a, which nobody else changes from now on.
func (s *store) put(a *ir.Array) (held, error) {
	n := int64(len(a.Data))
	if a.Kind == ir.Dense && n > s.room {
		return s.spill(a, n)
	}
	s.room -= n
	return held{Array: a, at: -1}, nil
}

func (s *store) spill(a *ir.Array, n int64) (held, error) {
	var err error
	if s.file == nil {
		if s.file, err = s.eval.Temp(); err != nil {
			return held{}, err
		}
	}
	at := s.place(n)
	if _, err := s.file.WriteAt(a.Data, at); err != nil {
		return held{}, fmt.Errorf("values between layers: %w", err)
	}
	return held{Array: &ir.Array{DType: a.DType, Shape: a.Shape}, at: at}, nil
}

// place is where n bytes go.
func (s *store) place(n int64) int64 {
	if g := s.gaps[n]; len(g) > 0 {
		s.gaps[n] = g[:len(g)-1]
		return g[len(g)-1]
	}
	s.end += n
	return s.end - n
}

// get is a value with its data.
func (s *store) get(h held) (*ir.Array, error) {
	if h.at < 0 {
		return h.Array, nil
	}
	a := ir.NewArray(h.DType, h.Shape...)
	return a, ir.ReadFull(s.file, a.Data, h.at)
}

// drop gives a value up.
func (s *store) drop(h held) {
	if h.at < 0 {
		s.room += int64(len(h.Data))
		return
	}
	s.gaps[h.Bytes()] = append(s.gaps[h.Bytes()], h.at)
}

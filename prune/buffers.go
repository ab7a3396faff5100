package prune

import "sync"

// buffers are the memory of passes, kept from one weight to the next: tables of counters are large, and garbage of
// that size would count several times until it is collected. The zero value is ready to use.
type buffers struct {
	counters []uint32

	mu     sync.Mutex
	tables [][]uint32
	narrow []*narrowKeys
	wide   []*wideKeys
}

// take returns n zeros, which are valid until the next call.
func (s *buffers) take(n int) []uint32 {
	if cap(s.counters) < n {
		s.counters = make([]uint32, n)
		return s.counters
	}
	clear(s.counters[:n])
	return s.counters[:n]
}

// table returns a table of n zeros for one worker; put takes it back, zeros again.
func (s *buffers) table(n int) []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.tables) - 1; last >= 0 {
		t := s.tables[last]
		s.tables = s.tables[:last]
		if cap(t) >= n {
			return t[:n]
		}
	}
	return make([]uint32, n)
}

func (s *buffers) put(t []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables = append(s.tables, t)
}

// keys returns buffers of the given kind for one worker; putKeys takes them back.
func (s *buffers) keys(wide bool) keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wide {
		return last(&s.wide)
	}
	return last(&s.narrow)
}

func (s *buffers) putKeys(k keys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch k := k.(type) {
	case *narrowKeys:
		s.narrow = append(s.narrow, k)
	case *wideKeys:
		s.wide = append(s.wide, k)
	}
}

// last takes the last element off a list, or makes one.
func last[T any](list *[]*T) *T {
	n := len(*list) - 1
	if n < 0 {
		return new(T)
	}
	t := (*list)[n]
	*list = (*list)[:n]
	return t
}

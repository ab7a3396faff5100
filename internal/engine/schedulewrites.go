package engine

import "slices"

// scheduleWrites moves the steps that modify their inputs to the first position where all their inputs are computed and
// no other step reads the modified ones afterwards: a gradient is then live for a short time only. Fusion may have
// moved consumers after them.
func (p *program) scheduleWrites() {
	var moved []*step
	rest := slices.DeleteFunc(slices.Clone(p.steps), func(s *step) bool {
		if len(s.op.Writes) > 0 {
			moved = append(moved, s)
		}
		return len(s.op.Writes) > 0
	})
	if len(moved) == 0 {
		return
	}
	after := map[int][]*step{} // by the number of steps in rest that must have run
	made, read := positions(rest)
	for _, s := range moved {
		at := 0
		for _, o := range s.in {
			if o != absent {
				at = max(at, made[o])
			}
		}
		for _, k := range s.op.Writes {
			if k < len(s.in) && s.in[k] != absent {
				at = max(at, read[s.in[k]])
			}
		}
		after[at] = append(after[at], s)
		for _, o := range s.out {
			made[o] = at
		}
	}
	p.steps = p.steps[:0:0]
	for i := range len(rest) + 1 {
		p.steps = append(p.steps, after[i]...)
		if i < len(rest) {
			p.steps = append(p.steps, rest[i])
		}
	}
}

// positions returns for each slot the number of steps that must have run until it is computed, and until it was read
// for the last time.
func positions(steps []*step) (made, read map[int]int) {
	made, read = map[int]int{}, map[int]int{}
	for i, s := range steps {
		for _, o := range s.out {
			made[o] = i + 1
		}
		for _, o := range s.in {
			read[o] = i + 1
		}
	}
	return made, read
}

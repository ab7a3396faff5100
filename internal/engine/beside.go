package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A commons is what sessions of models that differ in little may have of one another. It is what Options.Identity asks for.
type commons struct {
	identity func(*ir.Tensor) string
	digests  []digest             // by slot of the main program
	values   map[digest]int       // slots that are computed
	states   map[digest]*step     // by digests of operators and their constants: what was prepared
	held     map[string]*constant // by identities
}

// share notes what other sessions may have of e. It is called before constants are given up.
func (e *Interpreter) share(consts map[*ir.Tensor]*constant) {
	c := &commons{identity: e.opt.Identity, values: map[digest]int{}, states: map[digest]*step{}, held: map[string]*constant{}}
	c.digests = e.prog.digests(c.identity)
	for t, k := range consts {
		if name := c.identity(t); name != "" {
			c.held[name] = k
		}
	}
	e.commons = c
}

// offer lets Run be asked for what is computed, by names that sessions beside e use.
func (e *Interpreter) offer() {
	for _, s := range e.prog.steps {
		for k, o := range s.out {
			if o != absent && s.Wanted[k] && e.commons.digests[o] != (digest{}) {
				e.commons.values[e.commons.digests[o]] = o
				e.prog.names[shared(o)] = o
			}
		}
	}
}

// shared is what slot o of a session is called by those beside it.
func shared(o int) string { return sharedPrefix + strconv.Itoa(o) }

const sharedPrefix = "beside:"

// cut leaves out of e's main program what other computes alike from the same inputs: it becomes inputs. What follows from shapes stays, as
// plans go by it.
func (e *Interpreter) cut(other *commons) {
	p, d := e.prog, e.commons.digests
	shapes, needed := p.fromShapes(), make([]bool, len(p.slots))
	for o, s := range p.slots {
		needed[o] = s.keep
	}
	var kept []*step
	for _, s := range slices.Backward(p.steps) {
		stays := len(s.op.Writes) > 0
		for _, o := range s.out {
			if o == absent || !needed[o] {
				continue
			}
			if from, ok := other.values[d[o]]; ok && !shapes[o] {
				p.inputs, e.inputs = append(p.inputs, o), append(e.inputs, op.Port{Name: shared(from)})
			} else {
				stays = true
			}
		}
		if !stays {
			continue
		}
		kept = append(kept, s)
		for _, o := range s.in {
			if o != absent {
				needed[o] = true
			}
		}
	}
	slices.Reverse(kept)
	p.steps = kept
	e.forget(needed)
}

// forget takes out inputs that are not needed.
func (e *Interpreter) forget(needed []bool) {
	var ports []op.Port
	var slots []int
	for i, o := range e.prog.inputs {
		if needed[o] {
			ports, slots = append(ports, e.inputs[i]), append(slots, o)
		}
	}
	e.inputs, e.prog.inputs = ports, slots
}

// fromShapes are the slots that follow from shapes of others alone, by steps.
func (p *program) fromShapes() []bool {
	so := make([]bool, len(p.slots))
	for _, s := range p.steps {
		from := s.op.OfShape
		if !from {
			from = slices.ContainsFunc(s.in, func(i int) bool { return i != absent && so[i] }) &&
				!slices.ContainsFunc(s.in, func(i int) bool { return i != absent && !so[i] && p.slots[i].konst == nil })
		}
		for _, o := range s.out {
			if o != absent {
				so[o] = from
			}
		}
	}
	return so
}

// Given are the inputs of a session beside another that it would compute as the other does, whose Watch gives them under these names.
func (e *Interpreter) Given() []string {
	var list []string
	for _, p := range e.inputs {
		if strings.HasPrefix(p.Name, sharedPrefix) && !slices.Contains(list, p.Name) { // two values of one model may be alike
			list = append(list, p.Name)
		}
	}
	return list
}

// basis is the digest of what s is prepared from: its operator, and its constants in memory; zero where that is not known.
func (l *loader) basis(p *program, s *step) digest {
	if l.commons == nil || p.names == nil {
		return digest{}
	}
	var variable digest
	copy(variable[:], "not a constant in memory")
	return s.digest(func(i int) digest {
		if k := p.slots[i].konst; k == nil || k.stream {
			return variable
		}
		return l.commons.digests[i]
	})
}

// reuse gives s what another session prepared for a step like it, and reports whether there is one.
func (l *loader) reuse(p *program, s *step, d digest) bool {
	if l.beside == nil || d == (digest{}) || l.beside.states[d] == nil {
		return false
	}
	twin := l.beside.states[d]
	s.State, s.dropped = twin.State, twin.dropped
	for _, i := range s.dropped {
		p.slots[s.in[i]].konst.release()
	}
	return true
}

// twin is the constant of another session that holds the same as k, nil if there is none in memory.
func (l *loader) twin(k *constant) *constant {
	if l.beside == nil || k.tensor == nil {
		return nil
	}
	name := l.beside.identity(k.tensor)
	if t := l.beside.held[name]; name != "" && t != nil && op.Known(t.array) {
		return t
	}
	return nil
}

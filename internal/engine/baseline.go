package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// sharedState is the state that a session shares with sessions of models that differ from its own in a few weights.
// Options.Identity enables it.
type sharedState struct {
	identity  func(*ir.Tensor) string
	digests   []digest             // by slot of the main program
	values    map[digest]int       // slots of computed values, by digest
	prepared  map[digest]*step     // steps with prepared weights, by digest of their operator and constants
	constants map[string]*constant // constants by identity
}

// recordShared fills e.shared. It is called before constants are released.
func (e *Interpreter) recordShared(consts map[*ir.Tensor]*constant) {
	c := &sharedState{identity: e.opt.Identity, values: map[digest]int{}, prepared: map[digest]*step{},
		constants: map[string]*constant{}}
	c.digests = e.prog.digests(c.identity)
	for t, k := range consts {
		if name := c.identity(t); name != "" {
			c.constants[name] = k
		}
	}
	e.shared = c
}

// exportShared makes computed values fetchable under the names that sessions with this baseline use.
func (e *Interpreter) exportShared() {
	for _, s := range e.prog.steps {
		for k, o := range s.out {
			if o != absent && s.Consumed[k] && e.shared.digests[o] != (digest{}) {
				e.shared.values[e.shared.digests[o]] = o
				e.prog.names[sharedName(o)] = o
			}
		}
	}
}

// sharedName is the name of slot o for sessions with this baseline.
func sharedName(o int) string { return sharedPrefix + strconv.Itoa(o) }

const sharedPrefix = "baseline:"

// reuseValues replaces the values of e's main program that the baseline computes from the same inputs by inputs. Values
// that follow from shapes are kept, as plans depend on them.
func (e *Interpreter) reuseValues(other *sharedState) {
	p, d := e.prog, e.shared.digests
	// A plan needs the data of shapes, which inputs of a run do not have while it is planned.
	shapes, needed := p.shapeDerived(), make([]bool, len(p.slots))
	for o, s := range p.slots {
		needed[o] = s.keep
	}
	e.cut(needed, func(o int) (name string, ok bool) {
		from, ok := other.values[d[o]]
		return sharedName(from), ok && !shapes[o]
	})
}

// Part returns a session that computes the fetched values of e, from the given values and from those inputs of e that
// are still needed. It has the weights and the worker threads of e, is valid until e is closed, and is not closed
// itself. Given and fetched values are BaselineInputs of other sessions.
func (e *Interpreter) Part(given, fetch []string) *Interpreter {
	p := &program{slots: e.prog.slots, steps: e.prog.steps, inputs: e.prog.inputs, names: e.prog.names}
	part := &Interpreter{prog: p, pool: e.pool, eval: e.eval, account: e.account, opt: e.opt, inputs: e.inputs}
	needed, known := make([]bool, len(p.slots)), map[int]string{}
	for _, name := range fetch {
		o := p.names[name]
		needed[o] = true
		p.outputs, part.outputs = append(p.outputs, o), append(part.outputs, op.Port{Name: name})
	}
	for _, name := range given {
		known[p.names[name]] = name
	}
	part.cut(needed, func(o int) (name string, ok bool) {
		name, ok = known[o]
		return name, ok
	})
	return part
}

// cut removes the steps that compute no needed value. Values that source has a name for become inputs.
func (e *Interpreter) cut(needed []bool, source func(o int) (name string, ok bool)) {
	p := e.prog
	p.inputs, e.inputs = slices.Clone(p.inputs), slices.Clone(e.inputs)
	var kept []*step
	// Backwards, so that the inputs of a removed step are not marked as needed.
	for _, s := range slices.Backward(p.steps) {
		// Such a step has an effect without consumers.
		stays := len(s.op.Writes) > 0
		for _, o := range s.out {
			if o == absent || !needed[o] {
				continue
			}
			if name, ok := source(o); ok {
				p.inputs, e.inputs = append(p.inputs, o), append(e.inputs, op.Port{Name: name})
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
	e.dropInputs(needed)
}

// dropInputs removes inputs without consumers.
func (e *Interpreter) dropInputs(needed []bool) {
	var ports []op.Port
	var slots []int
	for i, o := range e.prog.inputs {
		if needed[o] {
			ports, slots = append(ports, e.inputs[i]), append(slots, o)
		}
	}
	e.inputs, e.prog.inputs = ports, slots
}

// shapeDerived marks the slots that depend only on the shapes of other values.
func (p *program) shapeDerived() []bool {
	so := make([]bool, len(p.slots))
	for _, s := range p.steps {
		// A step without inputs, such as a random one, depends on no shape: one input at least must.
		from := s.op.OfShape
		if !from {
			from = slices.ContainsFunc(s.in, func(i int) bool { return i != absent && so[i] }) &&
				!slices.ContainsFunc(s.in, func(i int) bool {
					return i != absent && !so[i] &&
						p.slots[i].constant == nil
				})
		}
		for _, o := range s.out {
			if o != absent {
				so[o] = from
			}
		}
	}
	return so
}

// BaselineInputs lists the inputs of a session that its baseline computes; the baseline's Watch accepts these names.
func (e *Interpreter) BaselineInputs() []string {
	var list []string
	for _, p := range e.inputs {
		// two values of one model may have the same digest
		if strings.HasPrefix(p.Name, sharedPrefix) && !slices.Contains(list, p.Name) {
			list = append(list, p.Name)
		}
	}
	return list
}

// preparedDigest is the digest of the operator of s and of its constants in memory; zero if unknown.
func (l *loader) preparedDigest(p *program, s *step) digest {
	// Digests are of slots of the main program.
	if l.shared == nil || p.names == nil {
		return digest{}
	}
	// Prepare gets no data of such inputs, so steps that differ in them alone have the same weights.
	var variable digest
	copy(variable[:], "not a constant in memory")
	return s.digest(func(i int) digest {
		if k := p.slots[i].constant; k == nil || k.stream {
			return variable
		}
		return l.shared.digests[i]
	})
}

// reusePrepared sets the prepared weights of s to those of an identical step of the baseline, and reports whether there
// is one.
func (l *loader) reusePrepared(p *program, s *step, d digest) bool {
	if l.baseline == nil || d == (digest{}) || l.baseline.prepared[d] == nil {
		return false
	}
	twin := l.baseline.prepared[d]
	// Shared, as the state of an operator is only read by runs.
	s.State, s.dropped = twin.State, twin.dropped
	for _, i := range s.dropped {
		l.release(p.slots[s.in[i]].constant)
	}
	return true
}

// sharedConstant is the baseline's constant with the same data as k, nil if it is not in memory.
func (l *loader) sharedConstant(k *constant) *constant {
	if l.baseline == nil || k.tensor == nil {
		return nil
	}
	name := l.baseline.identity(k.tensor)
	if t := l.baseline.constants[name]; name != "" && t != nil && op.IsKnown(t.array) {
		return t
	}
	return nil
}

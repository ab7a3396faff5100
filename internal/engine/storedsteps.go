package engine

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"reflect"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A Store gives a session the weights that an earlier session of the same model and options packed, and makes those
// that it packs available. Key identifies model, options and StoredVersion.
type Store struct {
	Key  string
	Data []byte // what Write of the earlier session wrote, in memory that is only read; nil if there was none
	// Release is called once, when the session no longer uses Data; may be nil.
	Release func() error

	header   *storedHeader
	payloads *payloads
	next     int // step of header that is loaded next
	packed   []packedStep
	programs map[*program]int
	known    map[*constant]bool // before steps are folded
	data     map[[2]int]int     // payloads of the constants of header, by program and slot
}

// A packedStep is a packed constant that a step became.
type packedStep struct {
	record *storedStep
	made   op.Packed
}

// open verifies Data. It does nothing on a nil Store.
func (t *Store) open(pool *op.Pool) (err error) {
	switch {
	case t == nil:
	case t.Data != nil:
		t.header, t.payloads, err = readStored(t.Data, t.Key, pool)
	default:
		t.header, t.payloads = &storedHeader{Key: t.Key}, &payloads{at: map[*byte]int{}}
	}
	return err
}

// loads reports whether the weights are in Data.
func (t *Store) loads() bool { return t != nil && t.Data != nil }

// step is the record of s: that in Data, or a new one. It is nil without a Store.
func (t *Store) step(s *step) (*storedStep, error) {
	switch {
	case t == nil:
		return nil, nil
	case t.Data == nil:
		r := &storedStep{Label: s.Label}
		t.header.Steps = append(t.header.Steps, r)
		return r, nil
	case t.next >= len(t.header.Steps) || t.header.Steps[t.next].Label != s.Label:
		return nil, fmt.Errorf("%w: step %s is unknown", ErrStored, s.Label)
	}
	t.next++
	return t.header.Steps[t.next-1], nil
}

// start numbers the programs, and gives constants their data.
func (l *loader) start(p *program) error {
	t := l.store
	if t == nil {
		return nil
	}
	if t.programs == nil {
		t.programs, t.known, t.data = map[*program]int{}, map[*constant]bool{}, map[[2]int]int{}
		for _, c := range t.header.Constants {
			t.data[[2]int{c.Program, c.Slot}] = c.Payload
		}
	}
	t.programs[p] = len(t.programs)
	for i, s := range p.slots {
		if s.constant == nil {
			continue
		}
		t.known[s.constant] = op.IsKnown(s.constant.array)
		if err := l.setData(p, i); err != nil {
			return err
		}
	}
	return nil
}

// setData sets the data of the constant of a slot if they are stored.
func (l *loader) setData(p *program, slot int) (err error) {
	k := p.slots[slot].constant
	payload, ok := l.store.data[[2]int{l.store.programs[p], slot}]
	if !ok || op.IsKnown(k.array) {
		return nil
	}
	if k.array.Data, err = l.store.payloads.get(payload, k.array.Bytes()); err != nil {
		return err
	}
	k.counted += k.array.Bytes()
	return l.account.Take(k.array.Bytes())
}

// keep stores the data of the constant of a slot, unless a session reads or folds it before all others.
func (t *Store) keep(p *program, slot int) {
	if slot == absent || p.slots[slot].constant == nil {
		return
	}
	k, at := p.slots[slot].constant, [2]int{t.programs[p], slot}
	if _, twice := t.data[at]; twice || k.stream || t.known[k] || len(k.array.Data) == 0 {
		return
	}
	t.data[at] = t.payloads.add(k.array.Data)
	t.header.Constants = append(t.header.Constants, storedConstant{at[0], slot, t.data[at]})
}

// fold replaces s by constants if it can, and reports whether it did. r is its record, or nil.
func (l *loader) fold(p *program, s *step, r *storedStep, slots []packable) (bool, error) {
	if l.store.loads() && !r.Again {
		return l.restoreOutputs(p, s, r)
	}
	if !p.foldable(s) {
		return false, nil
	}
	if l.pack(p, s, slots) {
		if r != nil {
			r.Packed = &storedValue{}
			l.store.packed = append(l.store.packed, packedStep{r, p.slots[s.out[0]].constant.packed})
		}
		return true, nil
	}
	folded := l.foldStep(p, s)
	if folded && r != nil && !l.store.loads() {
		l.store.recordOutputs(p, s, r)
	}
	return folded, nil
}

// recordOutputs adds the constants that s became to its record.
func (t *Store) recordOutputs(p *program, s *step, r *storedStep) {
	for _, o := range s.out {
		var out storedOutput
		if o != absent && p.slots[o].constant != nil {
			a := p.slots[o].constant.array
			if a.Kind != ir.Dense || a.DType == ir.String {
				t.repeat(p, s, r)
				return
			}
			out = storedOutput{a.DType, a.Shape}
			if len(a.Data) <= smallConstant {
				t.keep(p, o)
			}
		}
		r.Folded = append(r.Folded, out)
	}
}

// repeat records that s is folded or prepared again, from inputs that are stored.
func (t *Store) repeat(p *program, s *step, r *storedStep) {
	r.Folded, r.Again = nil, true
	for _, i := range s.in {
		if i != absent && p.slots[i].constant != nil && p.slots[i].constant.tensor == nil {
			t.keep(p, i)
		}
	}
}

// restoreOutputs replaces s by the constants of its record, and reports whether there are any.
func (l *loader) restoreOutputs(p *program, s *step, r *storedStep) (bool, error) {
	if r.Packed != nil {
		return true, l.restorePacked(p, s, r.Packed)
	}
	for i, out := range r.Folded {
		if o := s.out[i]; o != absent && out.DType != ir.Undefined {
			p.slots[o].constant = &constant{array: &ir.Array{DType: out.DType, Shape: out.Shape}}
			if err := l.setData(p, o); err != nil {
				return false, err
			}
		}
	}
	return r.Folded != nil, nil
}

// restorePacked replaces s by a packed constant: the one that it has while memory is only planned, with the data of the
// record.
func (l *loader) restorePacked(p *program, s *step, v *storedValue) error {
	in, packed := make([]*ir.Array, len(s.in)), make([]op.Packed, len(s.in))
	for i, j := range s.in {
		if j != absent {
			in[i], packed[i] = p.slots[j].constant.array, p.slots[j].constant.packed
		}
	}
	specs, err := s.shape(in)
	if err != nil {
		return err
	}
	made := packed[0]
	if !s.op.View {
		made = s.op.Pack(s.Node, in, packed)
	}
	if made == nil {
		return fmt.Errorf("%w: %s is not packed", ErrStored, s.Label)
	}
	if v.Numbers != nil {
		if err := decodeStored(reflect.ValueOf(made), v.Numbers, l.store.payloads); err != nil {
			return err
		}
	}
	k := &constant{array: &ir.Array{DType: specs[0].DType, Shape: specs[0].Shape}, packed: made, counted: made.Bytes()}
	p.slots[s.out[0]].constant = k
	if err := l.account.Take(k.counted); err != nil {
		return err
	}
	return l.setData(p, s.out[0])
}

// restorePrepared is the result of Prepare of s, if its record has one. ok reports whether Prepare need not be called.
func (l *loader) restorePrepared(s *step, r *storedStep) (made *op.Prepared, ok bool, err error) {
	if !l.store.loads() || r.Again {
		return nil, false, nil
	}
	if r.Prepared == nil {
		return nil, true, nil
	}
	v := reflect.New(reflect.TypeOf(s.op.States[r.Prepared.Type]))
	if err := decodeStored(v, r.Prepared.Numbers, l.store.payloads); err != nil {
		return nil, false, err
	}
	return &op.Prepared{State: v.Elem().Interface(), Bytes: r.Prepared.Bytes, Drops: r.Prepared.Drops}, true, nil
}

// recordPrepared adds what Prepare of s made to the record of s, if there is one. A state that cannot be stored is made
// again.
func (l *loader) recordPrepared(p *program, s *step, r *storedStep, made *op.Prepared) error {
	if l.store == nil || l.store.loads() || made == nil {
		return nil
	}
	for i, of := range s.op.States {
		if reflect.TypeOf(of) != reflect.TypeOf(made.State) {
			continue
		}
		v := reflect.New(reflect.TypeOf(of))
		v.Elem().Set(reflect.ValueOf(made.State))
		numbers, err := encodeStored(v.Interface(), l.store.payloads)
		r.Prepared = &storedPrepared{i, storedValue{numbers}, made.Bytes, made.Drops}
		return err
	}
	l.store.repeat(p, s, r)
	return nil
}

// finish records the constants and packed constants that runs need, or compares the program with that of the record.
func (t *Store) finish(main *program) error {
	if t == nil {
		return nil
	}
	used := map[op.Packed]bool{}
	h := sha256.New()
	err := main.each(func(p *program) error {
		for _, s := range p.steps {
			fmt.Fprintf(h, "%q %s %d %d %d\n", s.Label, s.ID, s.in, s.out, s.dropped)
			if s.Packed != nil {
				used[s.Packed] = true
			}
		}
		for i, s := range p.slots {
			if s.constant == nil || s.constant.uses == 0 {
				continue
			}
			if s.constant.packed != nil {
				used[s.constant.packed] = true
			}
			if !t.loads() {
				t.keep(p, i)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if t.loads() {
		if !bytes.Equal(h.Sum(nil), t.header.Program) || t.next != len(t.header.Steps) {
			return fmt.Errorf("%w: of another program", ErrStored)
		}
		return nil
	}
	t.header.Program = h.Sum(nil)
	return t.recordPacked(used)
}

// recordPacked records the packed constants that are used.
func (t *Store) recordPacked(used map[op.Packed]bool) error {
	for _, s := range t.packed {
		if reflect.TypeOf(s.made).Kind() != reflect.Pointer || !used[s.made] {
			continue
		}
		numbers, err := encodeStored(s.made, t.payloads)
		if err != nil {
			return err
		}
		s.record.Packed.Numbers = numbers
	}
	return nil
}

// Write writes the weights of a session whose Store had no Data. It is called once.
func (t *Store) Write(w io.Writer) error {
	header, all := t.header, t.payloads
	t.header, t.payloads, t.packed, t.known = nil, nil, nil, nil // of which some are not in the session
	return header.write(w, all)
}

func (t *Store) close() error {
	if t == nil || t.Release == nil {
		return nil
	}
	return t.Release()
}

package prune

import (
	"errors"
	"flag"
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// LowRank puts two factors in the place of a matrix, the nearest ones of their rank by the
// singular value decomposition (Eckart & Young, Psychometrika 1, 1936): of MatMul and Gemm,
// and of a Conv as one with few filters and one of 1×1 behind it. It does so where the
// factors and the node between them take fewer bytes.
//
// A matrix of 768 rows takes one to two seconds of one core; time grows with the third power
// of the smaller side. One matrix is held in float64 at a time.
var LowRank = &pass.Method{
	Name:    "lowrank",
	Command: "prune",
	Doc:     "replace matrices by two factors of lower rank, where that is smaller",
	Stage:   pass.Prune,
	Shrinks: true,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		m := &lowrank{amount: 0.5}
		fs.Var(&m.amount, "amount", "`share` of each weight's elements that factors save, from 0 to 1")
		fs.Var(&m.energy, "energy", "`share` of the squares of singular values to keep, from 0 to 1, whatever rank that takes")
		fs.Var(&m.rank, "rank", "`rank` of all factors")
		return m.run
	},
}

type lowrank struct {
	amount amount
	energy optionalShare // instead of amount
	rank   optionalCount // likewise
}

// An optionalShare is an amount, or 0 where it is not given.
type optionalShare amount

// String is the number as Set takes it, empty where there is none.
func (a *optionalShare) String() string {
	if *a == 0 {
		return ""
	}
	return (*amount)(a).String()
}

// Set parses a number from 0 to 1.
func (a *optionalShare) Set(s string) error { return (*amount)(a).Set(s) }

// An optionalCount is a count, or 0 where it is not given.
type optionalCount int

// String is the number as Set takes it, empty where there is none.
func (n *optionalCount) String() string {
	if *n == 0 {
		return ""
	}
	return (*count)(n).String()
}

// Set parses a number of 1 or more.
func (n *optionalCount) Set(s string) error { return (*count)(n).Set(s) }

func (m *lowrank) run(c *pass.Context) error {
	if m.rank > 0 && m.energy > 0 {
		return pass.OptionErrorf("--rank and --energy exclude one another")
	}
	for _, w := range weights(c, true) {
		f, why := findFactored(c, w)
		if why == "" {
			var err error
			if why, err = m.factor(c, f); err != nil {
				return err
			}
		}
		if why != "" {
			w.skip(c, why)
		}
	}
	return nil
}

// factor replaces f's weight, or gives the reason why it stays.
func (m *lowrank) factor(c *pass.Context, f *factored) (why string, err error) {
	most := f.most()
	if most < 1 {
		return fmt.Sprintf("two factors of a matrix of %d×%d are larger at any rank", f.rows, f.cols), nil
	}
	s, err := decompose(c, f, most)
	if u := (*pass.Unfit)(nil); errors.As(err, &u) {
		return u.Reason, nil
	}
	if err != nil {
		return "", err
	}
	r := m.choose(f, s)
	if r > most {
		return fmt.Sprintf("rank %d of %d would be larger: %d×%d is smaller as two factors up to rank %d", r, min(f.rows, f.cols), f.rows, f.cols, most), nil
	}
	kept := s.share(r)
	a, b := s.factors(f, r)
	f.rewrite(c, a, b, fmt.Sprintf("rank %d of %d, %.4g %% of the energy kept", r, min(f.rows, f.cols), 100*kept))
	return "", nil
}

// choose is the rank that the options ask for.
func (m *lowrank) choose(f *factored, s *spectrum) int64 {
	all := min(f.rows, f.cols)
	if m.rank > 0 {
		return min(int64(m.rank), all)
	}
	if m.energy == 0 {
		left := (1 - float64(m.amount)) * float64(f.rows) * float64(f.cols)
		return max(int64(left)/(f.rows+f.cols), 1)
	}
	r := int64(1)
	for r < all && s.share(r) < float64(m.energy) {
		r++
	}
	return r
}

// most is the largest rank at which factors and graph take fewer bytes than the weight.
func (f *factored) most() int64 {
	size := f.w.before.DType.Bits() / 8
	room := f.rows*f.cols*size - nodeBytes - 3*int64(len(f.w.v.Name)) - 1
	return min(room/((f.rows+f.cols)*size), min(f.rows, f.cols))
}

// nodeBytes is what a second product and a second tensor take in the file, payload and names
// of the weight apart.
const nodeBytes = 200

// rewrite puts a product with each factor in the place of the one with the weight.
func (f *factored) rewrite(c *pass.Context, a, b *ir.Tensor, reason string) {
	v, n := f.w.v, f.node
	old := n.Input(f.input)
	first, second := f.place(v, a, b)
	f.kind.rewrite(f, first, second)
	v.Type = typeOf(v.Const)
	if old != v {
		old.Drop()
	}
	parts := []pass.Part{{Role: pass.Payload, Value: f.a, Tensor: f.a.Const}, {Role: pass.Payload, Value: f.b, Tensor: f.b.Const}}
	c.Changed(v, f.w.before, f.w.readers, pass.Row{
		Form:    pass.Factors,
		Reason:  reason,
		After:   parts,
		Restore: func(parts []*ir.Tensor) *ir.Tensor { return f.product(c.Method, parts[0], parts[1]) },
	})
}

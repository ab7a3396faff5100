package prune

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// NM keeps the n largest of every m neighbours along the reduction axis (N:M sparsity), the pattern of sparse tensor
// cores: K of a matrix, the input channels of a convolution, the input or hidden size of a recurrent layer. Of equal
// magnitudes the lower index is pruned first. Where m does not divide the axis, the last group is shorter and keeps n
// too.
type NM struct {
	pass.Selection
	// Pattern keeps N of every M elements along the reduction axis; the zero value is 2:4.
	Pattern Pattern `flag:"pattern" default:"2:4" usage:"'n:m' to keep n of every m"`
	// Embeddings prunes tables that Gather looks up, too.
	Embeddings bool `flag:"embeddings" usage:"prune tables that Gather looks up, too"`
}

var nmMethod = &pass.Method{
	Name:    "nm",
	Command: "prune",
	Doc:     "keep the n largest of every m elements along the reduction axis",
	Stage:   pass.Prune,
	New:     func() pass.Options { return &NM{} },
}

// Method describes the method.
func (NM) Method() *pass.Method { return nmMethod }

// A Pattern keeps N of every M elements.
type Pattern struct{ N, M int }

// maxGroup bounds m: the work for a group grows with its square.
const maxGroup = 256

// String is the pattern as Set takes it, empty for none.
func (p *Pattern) String() string {
	if *p == (Pattern{}) {
		return ""
	}
	return fmt.Sprintf("%d:%d", p.N, p.M)
}

// Set parses n:m with 0 < n < m.
func (p *Pattern) Set(s string) error {
	a, b, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(a)
	m, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil || n < 1 || n >= m || m > maxGroup {
		return fmt.Errorf("%q is not a pattern n:m with 0 < n < m ≤ %d, such as 2:4", s, maxGroup)
	}
	*p = Pattern{n, m}
	return nil
}

// Run implements pass.Options.
func (o NM) Run(ctx context.Context, s *pass.Step) error {
	for _, w := range weights(s, o.Embeddings) {
		if err := o.prune(ctx, s, w); err != nil {
			return err
		}
	}
	return nil
}

// axis is the axis of w along which p is applied, or the reason why there is none.
func (p *Pattern) axis(w *weight) (span, pass.Reason) {
	axis, reason := common(w, func(l layout) span { return l.axisOf(reduce) })
	if reason.None() && axis.n <= int64(p.N) {
		reason = pass.Reason{Code: pass.Shape,
			Detail: fmt.Sprintf("reduction axis of %d elements, all kept by %s", axis.n, p)}
	}
	return axis, reason
}

func (o NM) prune(ctx context.Context, step *pass.Step, w *weight) error {
	axis, reason := o.Pattern.axis(w)
	if !reason.None() {
		w.skip(step, reason)
		return nil
	}
	if fit, err := w.precheck(ctx, step); !fit || err != nil {
		return err
	}
	s := &slabs{Pattern: o.Pattern, axis: axis, t: w.before}
	w.swap(step, s.passNote(), s.recipe())
	return nil
}

// slabs are the units that a weight is pruned in: all groups between one multiple of m along
// the axis and the next, at one place of the outer axes.
type slabs struct {
	Pattern
	axis span
	t    *ir.Tensor
}

func (s *slabs) passNote() pass.Reason {
	groups := (s.axis.n + int64(s.M) - 1) / int64(s.M)
	last := s.axis.n - (groups-1)*int64(s.M)
	pruned := s.axis.n - (groups-1)*int64(s.N) - min(last, int64(s.N))
	around := s.axis.outer * s.axis.inner
	return pass.Reason{Code: pass.Pruned, Detail: fmt.Sprintf("%d of %d elements, %s along the axis of %d", pruned*around,
		s.t.Elems(), &s.Pattern, s.axis.n)}
}

// recipe is a view where a slab is no larger than a block; else slabs are pruned one after the other.
func (s *slabs) recipe() *ir.Recipe {
	if int64(s.M)*s.axis.inner <= pass.Block {
		return &ir.Recipe{View: func(in []io.ReaderAt) io.ReaderAt { return &slabView{s, in[0]} }}
	}
	return &ir.Recipe{
		Work: 2 * int64(s.M) * s.axis.inner * s.size(),
		Run:  func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error { return s.write(ctx, in[0], out[0]) },
	}
}

func (s *slabs) size() int64 { return s.t.DType.Bits() / 8 }

func (s *slabs) write(ctx context.Context, in io.ReaderAt, out io.Writer) error {
	for from := int64(0); from < s.t.Elems(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := s.ceil(from + 1)
		b, err := s.read(in, from, to)
		if err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// floor is the start of the slab of element i.
func (s *slabs) floor(i int64) int64 {
	plane := s.axis.n * s.axis.inner
	within := i % plane
	return i - within%(int64(s.M)*s.axis.inner)
}

// ceil is the end of the slab of element i-1.
func (s *slabs) ceil(i int64) int64 {
	plane := s.axis.n * s.axis.inner
	start := s.floor(i - 1)
	return min(start+int64(s.M)*s.axis.inner, start-start%plane+plane)
}

// read reads and prunes the whole slabs from element from up to element to.
func (s *slabs) read(in io.ReaderAt, from, to int64) ([]byte, error) {
	b := make([]byte, (to-from)*s.size())
	if err := ir.ReadFull(in, b, from*s.size()); err != nil {
		return nil, err
	}
	if err := finite(b, s.t); err != nil {
		return nil, err
	}
	s.prune(b, from)
	return b, nil
}

// prune prunes whole slabs. They follow each other like rows of one matrix where m divides
// the axis; else the groups begin anew at each place of the outer axes.
func (s *slabs) prune(b []byte, from int64) {
	if s.axis.n%int64(s.M) == 0 {
		s.pruneGroups(b)
		return
	}
	plane := s.axis.n * s.axis.inner
	for len(b) > 0 {
		n := min((plane-from%plane)*s.size(), int64(len(b)))
		s.pruneGroups(b[:n])
		b, from = b[n:], from+n/s.size()
	}
}

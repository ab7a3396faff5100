package prune

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// NM keeps the n largest of every m neighbours along the axis that products sum over, the
// pattern of sparse tensor cores: K of a matrix, the input channels of a convolution, the
// input or hidden size of a recurrent layer. Of equal magnitudes the lower index falls
// first. Where m does not divide the axis, the last group is shorter and keeps n too.
var NM = &pass.Method{
	Name:    "nm",
	Command: "prune",
	Doc:     "keep the n largest of every m elements along the reduction axis",
	Stage:   pass.Prune,
	Bind: func(fs *flag.FlagSet) func(*pass.Context) error {
		m := &nm{pattern: pattern{2, 4}, embeddings: bindEmbeddings(fs)}
		fs.Var(&m.pattern, "pattern", "`n:m` to keep n of every m")
		return m.run
	},
}

// A pattern keeps n of every m elements.
type pattern struct{ n, m int }

// maxGroup bounds m: the work for a group grows with its square.
const maxGroup = 256

// String is the pattern as Set takes it.
func (p *pattern) String() string { return fmt.Sprintf("%d:%d", p.n, p.m) }

// Set parses n:m with 0 < n < m.
func (p *pattern) Set(s string) error {
	a, b, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(a)
	m, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil || n < 1 || n >= m || m > maxGroup {
		return fmt.Errorf("%q is no pattern n:m with 0 < n < m ≤ %d, such as 2:4", s, maxGroup)
	}
	*p = pattern{n, m}
	return nil
}

type nm struct {
	pattern    pattern
	embeddings *bool
}

func (m *nm) run(c *pass.Context) error {
	for _, w := range weights(c, *m.embeddings) {
		if err := m.prune(c, w); err != nil {
			return err
		}
	}
	return nil
}

func (m *nm) prune(c *pass.Context, w *weight) error {
	axis, why := agreed(w, func(l layout) span { return l.along(reduce) })
	if why == "" && axis.n <= int64(m.pattern.n) {
		why = fmt.Sprintf("its reduction axis has %d elements, %s keeps them all", axis.n, &m.pattern)
	}
	if why != "" {
		w.skip(c, why)
		return nil
	}
	if fit, err := w.precheck(c); !fit || err != nil {
		return err
	}
	s := &slabs{pattern: m.pattern, axis: axis, t: w.before}
	w.swap(c, s.reason(), s.recipe())
	return nil
}

// slabs are the units that a weight is pruned in: all groups between one multiple of m along
// the axis and the next, at one place of the outer axes.
type slabs struct {
	pattern
	axis span
	t    *ir.Tensor
}

func (s *slabs) reason() string {
	groups := (s.axis.n + int64(s.m) - 1) / int64(s.m)
	last := s.axis.n - (groups-1)*int64(s.m)
	fall := s.axis.n - (groups-1)*int64(s.n) - min(last, int64(s.n))
	around := s.axis.outer * s.axis.inner
	return fmt.Sprintf("%d of %d elements pruned, %s along the axis of %d", fall*around, s.t.Elems(), &s.pattern, s.axis.n)
}

// recipe is a view, if what a read touches beside its own elements stays within a block;
// else slabs are pruned one after the other.
func (s *slabs) recipe() *ir.Recipe {
	if int64(s.m)*s.axis.inner <= pass.Block {
		return &ir.Recipe{View: func(in []io.ReaderAt) io.ReaderAt { return &slabView{s, in[0]} }}
	}
	return &ir.Recipe{
		Work: 2 * int64(s.m) * s.axis.inner * s.size(),
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

// floor is the start of the slab that element i lies in.
func (s *slabs) floor(i int64) int64 {
	plane := s.axis.n * s.axis.inner
	within := i % plane
	return i - within%(int64(s.m)*s.axis.inner)
}

// ceil is the end of the slab that element i-1 lies in.
func (s *slabs) ceil(i int64) int64 {
	plane := s.axis.n * s.axis.inner
	start := s.floor(i - 1)
	return min(start+int64(s.m)*s.axis.inner, start-start%plane+plane)
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
	if s.axis.n%int64(s.m) == 0 {
		s.groups(b)
		return
	}
	plane := s.axis.n * s.axis.inner
	for len(b) > 0 {
		n := min((plane-from%plane)*s.size(), int64(len(b)))
		s.groups(b[:n])
		b, from = b[n:], from+n/s.size()
	}
}

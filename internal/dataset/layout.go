package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// A Layout is the order of the axes of one sample: channels before or after the spatial axes, of which there are two or
// more.
type Layout string

// The layouts.
const (
	UnknownLayout Layout = ""
	CHW           Layout = "chw"
	HWC           Layout = "hwc"
)

// Layout is that of the samples of in: by the first operators with channels that read it, otherwise by an axis of 1, 3
// or 4 at one end of a sample.
func (in Input) Layout() Layout {
	dims := in.dims(nil)
	if len(dims) < 4 {
		return UnknownLayout
	}
	if in.value != nil {
		if axis := channelAxis(in.value, len(dims)); axis > 0 {
			return layoutOf(axis == 1, axis == len(dims)-1)
		}
	}
	return layoutOf(isChannels(dims[1]), isChannels(dims[len(dims)-1]))
}

func layoutOf(first, last bool) Layout {
	switch {
	case first && !last:
		return CHW
	case last && !first:
		return HWC
	}
	return UnknownLayout
}

// channelAxis is the axis of v that is the channels, axis 1, of the first operator with channels that reads v, or a
// value of the same axes or their permutation; 0 if there is none.
func channelAxis(v *ir.Value, rank int) int {
	type permuted struct {
		value *ir.Value
		axes  []int // of v, by those of value
	}
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	seen, queue := map[*ir.Value]bool{v: true}, []permuted{{v, axes}}
	for len(queue) > 0 && len(seen) < maxPictureVisits {
		p := queue[0]
		queue = queue[1:]
		for _, u := range p.value.Uses() {
			// Later inputs are weights or sizes, unless they are operands like the first one.
			if u.Node == nil || u.Index != 0 && operator.Of(u.Node).Elementwise != operator.Broadcasts {
				continue
			}
			// ONNX has the channels as axis 1 of these operators; its place in v follows the transposes in between.
			if operator.Of(u.Node).HasChannels() {
				return p.axes[1]
			}
			axes := permute(u.Node, p.axes)
			for _, out := range u.Node.Outputs {
				if out != nil && !seen[out] && axes != nil {
					seen[out] = true
					queue = append(queue, permuted{out, axes})
				}
			}
		}
	}
	return 0
}

// permute returns the axes of the output of n for those of its input; nil if n does not keep the axes.
func permute(n *ir.Node, axes []int) []int {
	facts := operator.Of(n)
	switch {
	case n.Op.Is("Transpose"):
		perm := n.Attr("perm")
		if perm == nil || len(perm.Ints) != len(axes) {
			return nil
		}
		out := make([]int, len(axes))
		for i, from := range perm.Ints {
			if from < 0 || from >= int64(len(axes)) {
				return nil
			}
			out[i] = axes[from]
		}
		return out
	case facts.Elementwise != operator.NotElementwise, facts.LayoutAgnostic && !facts.Reduction, facts.Spatial:
		return axes
	}
	return nil
}

// opposite is the other layout.
func (l Layout) opposite() Layout {
	if l == CHW {
		return HWC
	}
	return CHW
}

// text describes the layout for messages.
func (l Layout) text() string {
	if l == CHW {
		return "chw (channels first)"
	}
	return "hwc (channels last)"
}

// channels is the position of the channels in a sample of a number of axes.
func (l Layout) channels(rank int) int {
	if l == CHW {
		return 0
	}
	return rank - 1
}

// oppositeShape returns the axes of a sample of layout l in the opposite one.
func (l Layout) oppositeShape(shape []int64) []int64 {
	if l == CHW {
		return append(slices.Clone(shape[1:]), shape[0])
	}
	last := len(shape) - 1
	return append([]int64{shape[last]}, shape[:last]...)
}

// A relayout moves the channels of samples from one end to the other; equal layouts move nothing.
type relayout struct{ from, to Layout }

func (r relayout) moves() bool { return r.from != r.to }

// apply returns a, samples with these axes, with their channels moved, in memory of to. The data of a sample is a
// matrix, channels × pixels or pixels × channels: moving the channels transposes it.
func (r relayout) apply(a *ir.Array, shape []int64, to *buffers) *ir.Array {
	if !r.moves() {
		return a
	}
	samples, size := a.Elems()/max(1, elems(shape)), int(a.DType.Bits()/8)
	channels := shape[r.from.channels(len(shape))]
	rows, columns := int(channels), int(elems(shape)/max(1, channels))
	if r.from == HWC {
		rows, columns = columns, rows
	}
	out := to.array(a.DType, append([]int64{samples}, r.from.oppositeShape(shape)...)...)
	for at := 0; at < len(out.Data); at += rows * columns * size {
		transpose(out.Data[at:], a.Data[at:], rows, columns, size)
	}
	return out
}

// transpose writes a matrix of elements of a size in bytes, transposed.
func transpose(dst, src []byte, rows, columns, size int) {
	for r := range rows {
		for c := range columns {
			copy(dst[(c*rows+r)*size:][:size], src[(r*columns+c)*size:])
		}
	}
}

// arrange determines how samples of the data, with axes row, are read as in: reshaped to shape, and with their channels
// moved if the layouts differ. given is the layout of the data by Options, or unknown.
func (b *binding) arrange(dims []ir.Dim, row, shape []int64, given Layout) error {
	model := b.Layout()
	if given != UnknownLayout {
		return b.arrangeDeclared(dims, row, shape, given, model)
	}
	sample := sampleOf(dims, shape)
	var ok bool
	if b.place, ok = fit(dims, shape); ok {
		return b.unambiguous(row, sample, model)
	}
	if model != UnknownLayout && sample != nil && b.row().DType != ir.String {
		// Only a sample that does not fit as it is, and fits with its channels moved, is moved without being told.
		from := model.opposite()
		if b.place, ok = fit(dims, from.oppositeShape(sample)); ok {
			b.relayout, b.stored = relayout{from, model}, sample
			return b.contradiction(row, sample, from)
		}
	}
	return fmt.Errorf("a sample is %v, but %q is %s; set the shape of a sample with --reshape", shape, b.Name,
		typeText(b.Type))
}

// sampleOf returns shape without a batch axis of 1, nil if it has not as many axes as a sample of the model.
func sampleOf(dims []ir.Dim, shape []int64) []int64 {
	if len(shape) == len(dims) && len(shape) > 0 && shape[0] == 1 {
		shape = shape[1:]
	}
	if len(shape) != len(dims)-1 {
		return nil
	}
	return shape
}

// arrangeDeclared arranges samples of a given layout.
func (b *binding) arrangeDeclared(dims []ir.Dim, row, shape []int64, given, model Layout) error {
	sample := sampleOf(dims, shape)
	switch {
	case model == UnknownLayout:
		return fmt.Errorf("--layout %s: %q is %s, and the position of its channels is unknown; give the samples in the "+
			"model's shape, without --layout", given, b.Name, typeText(b.Type))
	case sample == nil:
		return fmt.Errorf("--layout %s: a sample is %v, but %q is %s; set the shape of a sample of the data with "+
			"--reshape, as %s", given, shape, b.Name, typeText(b.Type), given.example())
	case b.row().DType == ir.String:
		return fmt.Errorf("--layout %s: the samples are text", given)
	}
	to := sample
	if given != model {
		to = given.oppositeShape(sample)
		b.relayout, b.stored = relayout{given, model}, sample
	}
	var ok bool
	if b.place, ok = fit(dims, to); !ok {
		return fmt.Errorf("--layout %s: a sample is %v, but %q is %s, %s; --reshape has the axes of the data, as %s", given,
			sample, b.Name, typeText(b.Type), model.text(), given.example())
	}
	return b.contradiction(row, sample, given)
}

func (l Layout) example() string {
	if l == CHW {
		return "3,HEIGHT,WIDTH"
	}
	return "HEIGHT,WIDTH,3"
}

// unambiguous refuses to reshape samples with axes row to the shape of an image where elements of different channels
// could be mixed silently.
func (b *binding) unambiguous(row, shape []int64, model Layout) error {
	if !isImage(row, shape, model) || model.keeps(row, shape) {
		return nil
	}
	if err := b.contradiction(row, shape, model); err != nil {
		return err
	}
	other := model.opposite()
	return fmt.Errorf("a sample is %v, which can be %s or %s; use --layout %s --reshape %s, or --layout %s --reshape %s",
		row, model.text(), other.text(), model, list(shape), other, list(model.oppositeShape(shape)))
}

// contradiction refuses to reshape samples with axes row to a shape of layout l if their channels are at the other end.
func (b *binding) contradiction(row, shape []int64, l Layout) error {
	other := l.opposite()
	if !isImage(row, shape, l) || l.keeps(row, shape) || !other.keeps(row, l.oppositeShape(shape)) {
		return nil
	}
	return fmt.Errorf("a sample is %v, %s, and --reshape %s would mix its channels; use --layout %s without "+
		"--reshape, which moves them to the place that %q has them", row, other.text(), list(shape), other, b.Name)
}

// isImage reports whether a reshaped sample has more than one channel in layout l, and pixels.
func isImage(row, shape []int64, l Layout) bool {
	if len(shape) < 3 || l == UnknownLayout || slices.Equal(row, shape) {
		return false
	}
	channels := shape[l.channels(len(shape))]
	return channels > 1 && channels < elems(shape)
}

// keeps reports whether samples with axes row have the channels of shape, of layout l, as an axis at the same end.
func (l Layout) keeps(row, shape []int64) bool {
	axes := slices.DeleteFunc(slices.Clone(row), func(n int64) bool { return n == 1 })
	return len(axes) > 1 && axes[l.channels(len(axes))] == shape[l.channels(len(shape))]
}

// list formats sizes as --reshape has them.
func list(shape []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ","), "[]")
}

// layoutNote states that channels are moved; empty if they are not.
func (b *binding) layoutNote() string {
	if !b.relayout.moves() {
		return ""
	}
	return fmt.Sprintf("%q: samples %v of the data are %s; their channels were moved to %s", b.Name, b.stored,
		b.relayout.from, b.relayout.to)
}

// ClassNote states the numbers of the classes that have names; empty if none have.
func (s *Set) ClassNote() string {
	if len(s.classes) == 0 {
		return ""
	}
	const most = 20
	var numbered []string
	for i, name := range s.classes[:min(most, len(s.classes))] {
		numbered = append(numbered, fmt.Sprintf("%d %q", i, name))
	}
	if rest := len(s.classes) - most; rest > 0 {
		numbered = append(numbered, fmt.Sprintf("and %d more", rest))
	}
	return "classes: " + strings.Join(numbered, ", ")
}

// Notes state how samples were changed to the model's shapes, other than by options.
func (s *Set) Notes() []string {
	t, ok := s.feed.(*table)
	if !ok {
		return nil
	}
	var notes []string
	for _, b := range slices.Concat(t.inputs, t.outputs) {
		if note := b.layoutNote(); note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

package layout

import (
	"testing"

	"pgregory.net/rapid"
)

// TestUnfoldMatchesCopying copies the patches of small images, element by element, and counts pieces that are
// contiguous both in the image and in the patches.
func TestUnfoldMatchesCopying(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := func(name string, least, most int64) []int64 {
			return []int64{rapid.Int64Range(least, most).Draw(t, name), rapid.Int64Range(least, most).Draw(t, name)}
		}
		w := &Window{
			Batch: rapid.Int64Range(0, 2).Draw(t, "batch"), Group: rapid.Int64Range(1, 2).Draw(t, "group"),
			KernelShape: side("kernel", 1, 3), Strides: side("stride", 1, 2), Dilations: side("dilation", 1, 2),
			Pads: []int64{1, 1, 1, 1}, Size: side("size", 2, 4), ElemBytes: 4,
		}
		w.Channels = w.Group * rapid.Int64Range(2, 3).Draw(t, "channels")
		if w.KernelShape[1] == 1 {
			w.Dilations[1] = 1 // a kernel of one element has no dilation
		}
		first, last, err := w.unfold()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := first, (counter{}).channelsFirst(w); got != want {
			t.Fatalf("channels first: got %+v, want %+v", got, want)
		}
		if got, want := last, (counter{}).channelsLast(w); got != want {
			t.Fatalf("channels last: got %+v, want %+v", got, want)
		}
	})
}

// A counter counts element reads and contiguous runs. A run ends where the next element read is not the next one of the
// image, and at the end of a copy.
type counter struct {
	elements, runs int64
	at             int64
}

func (c *counter) read(address int64) {
	if address != c.at+1 {
		c.runs++
	}
	c.at = address
	c.elements++
}

func (c *counter) end() { c.at = -2 }

func (c counter) unfolding(w *Window) Unfolding {
	return Unfolding{2 * c.elements * w.ElemBytes, c.runs}
}

// width and height are those of an image with its padding, which is read like pixels.
func (w *Window) width() int64 {
	return (w.Size[1]-1)*w.Strides[1] + (w.KernelShape[1]-1)*w.Dilations[1] + 1
}
func (w *Window) height() int64 {
	return (w.Size[0]-1)*w.Strides[0] + (w.KernelShape[0]-1)*w.Dilations[0] + 1
}

// channelsFirst copies rows of the matrix of patches: one for each element of the kernel.
func (c counter) channelsFirst(w *Window) Unfolding {
	for plane := range w.Batch * w.Channels {
		for ky := range w.KernelShape[0] {
			for kx := range w.KernelShape[1] {
				for y := range w.Size[0] {
					c.end()
					for x := range w.Size[1] {
						row, column := y*w.Strides[0]+ky*w.Dilations[0], x*w.Strides[1]+kx*w.Dilations[1]
						c.read((plane*w.height()+row)*w.width() + column)
					}
				}
			}
		}
	}
	return c.unfolding(w)
}

// channelsLast copies rows of the matrix of patches: one for each pixel of the output and
// group.
func (c counter) channelsLast(w *Window) Unfolding {
	each := w.Channels / w.Group
	for pixel := range w.Batch * w.Size[0] * w.Size[1] {
		image, y, x := pixel/(w.Size[0]*w.Size[1]), pixel/w.Size[1]%w.Size[0], pixel%w.Size[1]
		for g := range w.Group {
			for ky := range w.KernelShape[0] {
				c.end()
				for kx := range w.KernelShape[1] {
					row, column := y*w.Strides[0]+ky*w.Dilations[0], x*w.Strides[1]+kx*w.Dilations[1]
					for ch := range each {
						c.read(((image*w.height()+row)*w.width()+column)*w.Channels + g*each + ch)
					}
				}
			}
		}
	}
	return c.unfolding(w)
}

func TestPointwiseConvolutionsCopyNothing(t *testing.T) {
	w := Window{Batch: 1, Channels: 8, Group: 1, KernelShape: []int64{1, 1}, Strides: []int64{1, 1},
		Dilations: []int64{1, 1}, Pads: []int64{0, 0, 0, 0}, Size: []int64{5, 5}, ElemBytes: 4}
	strided, padded := w, w
	strided.Strides = []int64{2, 2}
	padded.Pads = []int64{0, 1, 0, 1}
	bytes := int64(2 * 8 * 5 * 5 * 4)
	for name, c := range map[string]struct {
		w           Window
		first, last Unfolding
	}{
		"stride 1": {w, Unfolding{}, Unfolding{}},
		"stride 2": {strided, Unfolding{bytes, 8 * 5 * 5}, Unfolding{}},
		"padded":   {padded, Unfolding{bytes, 8 * 5}, Unfolding{bytes, 5 * 5}},
	} {
		first, last, err := c.w.unfold()
		if err != nil || first != c.first || last != c.last {
			t.Errorf("%s: got %+v, %+v, %v, want %+v, %+v", name, first, last, err, c.first, c.last)
		}
	}
}

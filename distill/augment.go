package distill

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine/train"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// An augmenter changes training images randomly, for teacher and student alike. It runs in the loaders: images depend
// on the step and their position in it only, not on micro-batches.
type augmenter struct {
	input string // of the model
	image image
	seed  int64
	all   []augmentation
}

// An image is the planes of one sample: height × width pixels of a number of bytes, which is that of all channels if
// these are the last axis.
type image struct{ height, width, pixel int }

// An augmentation changes one sample in place.
type augmentation func(m image, sample []byte, random train.Counter)

// newAugmenter returns the augmentations of --augment; nil without.
func newAugmenter(l *loader) (*augmenter, error) {
	if len(l.settings.Augment) == 0 {
		return nil, nil
	}
	if len(l.inputs) != 1 {
		return nil, fmt.Errorf("--augment requires a model with one input, an image; this one has %d inputs", len(l.inputs))
	}
	in := l.inputs[0]
	m, err := imageOf(l.sample[in.Name], in.Layout())
	if err != nil {
		return nil, fmt.Errorf("--augment: input %q: %w", in.Name, err)
	}
	a := &augmenter{input: in.Name, image: m, seed: int64(*l.settings.Seed)}
	for _, item := range l.settings.Augment {
		f, err := augmentationOf(item)
		if err != nil {
			return nil, err
		}
		a.all = append(a.all, f)
	}
	return a, nil
}

// augmentationOf returns that of one item of --augment.
func augmentationOf(item string) (augmentation, error) {
	name, text, _ := strings.Cut(item, "=")
	n, err := strconv.Atoi(text)
	switch {
	case item == "flip":
		return image.flip, nil
	case name == "shift" && err == nil && n > 0:
		return func(m image, sample []byte, random train.Counter) { m.shift(n, sample, random) }, nil
	}
	return nil, pass.OptionErrorf("--augment %s: unknown augmentation; use shift=PIXELS or flip", item)
}

// imageOf returns the image of batches of this type. Flattened images are assumed to be square planes.
func imageOf(batch ir.Spec, layout dataset.Layout) (image, error) {
	bytes := int(batch.DType.Bits() / 8)
	if !batch.DType.IsFloat() && batch.DType != ir.Uint8 || bytes == 0 || len(batch.Shape) < 2 {
		return image{}, fmt.Errorf("%s is not a batch of images", batch)
	}
	last := int(batch.Shape[len(batch.Shape)-1])
	m := image{1, last, bytes}
	switch rank := len(batch.Shape); {
	case rank == 2:
		for m.height*m.height < last {
			m.height++
		}
		if m.width = last / m.height; m.width*m.height != last {
			return image{}, fmt.Errorf("%s: a sample is not a square image", batch)
		}
	case layout == dataset.HWC:
		m = image{int(batch.Shape[rank-3]), int(batch.Shape[rank-2]), last * bytes}
	default:
		m.height = int(batch.Shape[rank-2])
	}
	return m, nil
}

// from returns the change of the micro-batches of an iteration that starts with a step, each of this number of samples;
// nil without augmentations.
func (a *augmenter) from(step, batch int) func(*dataset.Batch) error {
	if a == nil {
		return nil
	}
	return func(b *dataset.Batch) error {
		a.apply(b.Inputs[a.input], step+b.First/batch, b.First%batch)
		return nil
	}
}

// apply augments the images of a step from the one at position first.
func (a *augmenter) apply(x *ir.Array, step, first int) {
	if len(x.Data) == 0 {
		return
	}
	size := len(x.Data) / int(x.Shape[0])
	for k, f := range a.all {
		// By counter and not from a stream: workers augment batches in any order, and micro-batches are of any size.
		random := train.NewCounter(a.seed+int64(k), int64(step)).From(uint64(first))
		for i := range int(x.Shape[0]) {
			f(a.image, x.Data[i*size:][:size], train.Counter(random.At(uint64(i))))
		}
	}
}

// shift translates a sample by up to most pixels vertically and horizontally. New pixels are 0.
func (m image) shift(most int, sample []byte, random train.Counter) {
	most = min(most, max(m.height, m.width))
	down, right := random.Below(0, 2*most+1)-most, random.Below(1, 2*most+1)-most
	line := m.width * m.pixel
	kept := max(m.width-max(right, -right), 0) * m.pixel
	to, from := max(right, 0)*m.pixel, max(-right, 0)*m.pixel
	for at := 0; at < len(sample); at += m.height * line {
		plane := sample[at:][:m.height*line]
		for i := range m.height {
			y := i
			if down > 0 {
				y = m.height - 1 - i // a row is moved before it is overwritten
			}
			row := plane[y*line:][:line]
			if y < down || y >= m.height+down || kept == 0 {
				clear(row)
				continue
			}
			copy(row[to:][:kept], plane[(y-down)*line+from:])
			clear(row[:to])
			clear(row[to+kept:])
		}
	}
}

// flip mirrors a sample horizontally, with probability ½.
func (m image) flip(sample []byte, random train.Counter) {
	if random.Below(0, 2) == 0 {
		return
	}
	line := m.width * m.pixel
	for at := 0; at < len(sample); at += line {
		for left, right := at, at+line-m.pixel; left < right; left, right = left+m.pixel, right-m.pixel {
			for i := range m.pixel {
				sample[left+i], sample[right+i] = sample[right+i], sample[left+i]
			}
		}
	}
}

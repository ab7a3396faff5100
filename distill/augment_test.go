package distill

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// pictures returns a batch of 5 × 4 pixels: of 2 channels first, last, or flattened.
func pictures(n int64, shape ...int64) *ir.Array {
	a := ir.NewArray(ir.Float, append([]int64{n}, shape...)...)
	for i := range ir.View[float32](a) {
		ir.View[float32](a)[i] = float32(i + 1)
	}
	return a
}

// augmented returns x after --augment item.
func augmented(t *testing.T, item string, x *ir.Array, layout dataset.Layout, number int) *ir.Array {
	t.Helper()
	f, err := augmentationOf(item)
	if err != nil {
		t.Fatal(err)
	}
	m, err := imageOf(x.Spec(), layout)
	if err != nil {
		t.Fatal(err)
	}
	y := &ir.Array{DType: x.DType, Shape: x.Shape, Data: bytes.Clone(x.Data)}
	a := &augmenter{input: "x", image: m, seed: 1, all: []augmentation{f}}
	if err := a.from(number, int(x.Shape[0]))(&dataset.Batch{Inputs: map[string]*ir.Array{"x": y},
		N: int(x.Shape[0])}); err != nil {
		t.Fatal(err)
	}
	return y
}

// pixel returns element c of pixel (row, column) of sample i of pictures; 0 outside.
func pixel(a *ir.Array, layout dataset.Layout, i, c, row, column int) float32 {
	x := ir.View[float32](a)[i*40:][:40]
	switch {
	case row < 0 || row >= 5 || column < 0 || column >= 4:
		return 0
	case layout == dataset.HWC:
		return x[(row*4+column)*2+c]
	}
	return x[c*20+row*4+column]
}

// Each output sample is the input translated within the limit, padded with zeros: both channels alike, first or last.
func TestShift(t *testing.T) {
	for layout, shape := range map[dataset.Layout][]int64{dataset.CHW: {2, 5, 4}, dataset.HWC: {5, 4, 2}} {
		x := pictures(200, shape...)
		y := augmented(t, "shift=2", x, layout, 3)
		seen := map[[2]int]bool{}
		for i := range 200 {
			down, right, ok := translation(x, y, layout, i)
			if !ok {
				t.Fatalf("%s: sample %d is not a translation", layout, i)
			}
			seen[[2]int{down, right}] = true
		}
		if len(seen) != 25 {
			t.Errorf("%s: %d distances of 25 occur in 200 samples", layout, len(seen))
		}
	}
}

func translation(x, y *ir.Array, layout dataset.Layout, i int) (down, right int, ok bool) {
	for down := -2; down <= 2; down++ {
		for right := -2; right <= 2; right++ {
			equal := true
			for at := range 40 {
				c, row, column := at/20, at/4%5, at%4
				equal = equal && pixel(y, layout, i, c, row, column) == pixel(x, layout, i, c, row-down, column-right)
			}
			if equal {
				return down, right, true
			}
		}
	}
	return 0, 0, false
}

func TestShiftBeyondImage(t *testing.T) {
	x := pictures(50, 1, 2, 3)
	y := augmented(t, "shift=1099511627776", x, dataset.CHW, 1)
	if bytes.Equal(x.Data, y.Data) {
		t.Error("nothing was moved")
	}
}

func TestFlip(t *testing.T) {
	for layout, shape := range map[dataset.Layout][]int64{dataset.CHW: {2, 5, 4}, dataset.HWC: {5, 4, 2}} {
		x := pictures(400, shape...)
		y := augmented(t, "flip", x, layout, 3)
		flipped := 0
		for i := range 400 {
			if pixel(x, layout, i, 0, 0, 0) == pixel(y, layout, i, 0, 0, 0) {
				continue
			}
			flipped++
			for at := range 40 {
				if c, row, column := at/20, at/4%5, at%4; pixel(y, layout, i, c, row, column) != pixel(x, layout, i, c,
					row, 3-column) {
					t.Fatalf("%s: sample %d is neither unchanged nor mirrored", layout, i)
				}
			}
		}
		if math.Abs(float64(flipped)-200) > 60 {
			t.Errorf("%s: %d of 400 samples are mirrored", layout, flipped)
		}
	}
}

// Flattened images are square; a batch depends on its number and on nothing else.
func TestAugmentationFollowsBatch(t *testing.T) {
	x := pictures(20, 36)
	square := &ir.Array{DType: x.DType, Shape: []int64{20, 1, 6, 6}, Data: x.Data}
	first := augmented(t, "shift=2", x, dataset.UnknownLayout, 7)
	if !bytes.Equal(first.Data, augmented(t, "shift=2", square, dataset.CHW, 7).Data) {
		t.Error("a flattened image is not augmented as a square")
	}
	if bytes.Equal(first.Data, augmented(t, "shift=2", x, dataset.UnknownLayout, 8).Data) {
		t.Error("two batches are augmented alike")
	}
	if f := (*augmenter)(nil).from(3, 1); f != nil {
		t.Error("batches are changed without --augment")
	}
}

// The number of loaders and of batches read ahead changes neither the augmented images nor the weights.
func TestLoadersDoNotChangeTraining(t *testing.T) {
	path := flattened(t, 60)
	run := func(o ...string) map[string][]byte {
		m := network(1, 9, 12, classes)
		if _, err := tune(t, m, 2, append(o, "data", path, "labels", "label", "epochs", "2", "batch", "8", "accumulate",
			"2")...); err != nil {
			t.Fatal(err)
		}
		return weights(t, m)
	}
	want := run("loaders", "1", "prefetch", "0", "augment", "shift=1,flip")
	equal(t, run("loaders", "4", "prefetch", "6", "augment", "shift=1,flip"), want, "4 loaders")
	equal(t, run("augment", "shift=1,flip"), want, "default loaders")
	if bytes.Equal(run("augment", "flip")["w0"], want["w0"]) {
		t.Error("the augmentation changes nothing")
	}
}

// flattened writes n images of 3 × 3 pixels as a CSV.
func flattened(t *testing.T, n int) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("a,b,c,d,e,f,g,h,i,label\n")
	for i := range n {
		for k := range 9 {
			fmt.Fprintf(&b, "%d,", (i*7+k*i+k)%5)
		}
		fmt.Fprintf(&b, "%d\n", i%classes)
	}
	path := filepath.Join(t.TempDir(), "images.csv")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAugmentErrors(t *testing.T) {
	for _, item := range []string{"shift", "shift=0", "shift=-1", "shift=x", "flip=1", "rotate"} {
		if _, err := augmentationOf(item); err == nil || !strings.Contains(err.Error(), "use shift=PIXELS or flip") {
			t.Errorf("%s: error %v", item, err)
		}
	}
	for _, spec := range []ir.Spec{
		{DType: ir.Float, Shape: []int64{4}}, {DType: ir.Int64, Shape: []int64{4, 36}},
		{DType: ir.Float, Shape: []int64{4, 35}}, {DType: ir.String, Shape: []int64{4, 36}},
	} {
		if _, err := imageOf(spec, dataset.UnknownLayout); err == nil {
			t.Errorf("%s is accepted as images", spec)
		}
	}
}

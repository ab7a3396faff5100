package conv

import (
	"bytes"
	"testing"
)

// A whole patch is its elements one by one, inside the image and at its border.
func TestPixelPatch(t *testing.T) {
	for _, dilations := range [][]int{{1, 1}, {2, 1}, {1, 2}} {
		a := attrs{"dilations": dilations, "pads": []int{1, 1, 1, 1}, "strides": []int{2, 1}}
		g, err := GeometryOf(nodeOf("Conv", a), []int64{1, 3, 9, 8}, []int64{2, 3, 3, 3})
		if err != nil {
			t.Fatal(err)
		}
		x := make([]byte, g.InArea()*g.Channels())
		for i := range x {
			x[i] = byte(i + 1)
		}
		for place := range g.OutArea() {
			got, want := make([]byte, g.Depth()), make([]byte, g.Depth())
			g.PixelPatch(got, x, 0, place, 0, 0)
			for i := range want {
				g.PixelPatch(want[i:i+1], x, 0, place, i, 0)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("dilations %v, position %d: got %v, want %v", dilations, place, got, want)
			}
		}
	}
}

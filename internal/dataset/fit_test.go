package dataset

import (
	"fmt"
	"slices"
	"testing"
)

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		typ  string
		row  []int64
		want string // batched, fixed, shape
	}{
		{"float[n,1,28,28]", []int64{1, 28, 28}, "true 0 [1 28 28]"},
		{"float[8,1,28,28]", []int64{1, 28, 28}, "true 8 [1 28 28]"},
		{"float[n,1,28,28]", []int64{28, 28}, "true 0 [1 28 28]"},
		{"float[n,28,28,1]", []int64{28, 28}, "true 0 [28 28 1]"},
		{"float[n,28,28]", []int64{1, 28, 28}, "true 0 [28 28]"},
		{"float[1,257]", []int64{257}, "true 1 [257]"},
		{"float[1,1,257]", []int64{257}, "true 1 [1 257]"},
		{"float[5]", []int64{5}, "false 0 [5]"},
		{"float[5]", []int64{1, 5}, "false 0 [5]"},
		{"float[n]", nil, "true 0 []"},
		{"float[n]", []int64{1}, "true 0 []"},
		{"int64[n,seq]", []int64{1, 96}, "true 0 [96]"},
		{"float[2,n,128]", []int64{2, 1, 128}, "false 0 [2 1 128]"},
		{"int64[n,seq]", []int64{96}, "true 0 [96]"},
		{"int64[n,seq]", []int64{4, 96}, "false 0 [4 96]"},
		{"int64[n,1,seq]", []int64{96}, "true 0 [1 96]"},
		{"float", []int64{3, 4}, "true 0 [3 4]"}, // of unknown rank
		{"float[n,1,1]", []int64{1, 1, 1, 1}, "true 0 [1 1]"},
		{"float[n,784]", []int64{28, 28}, ""},
		{"float[n,3,4]", []int64{4, 3}, ""},
		{"float[n,1,28,28]", []int64{28, 27}, ""},
	} {
		p, ok := fit(input("x", tt.typ).dims(nil), tt.row)
		got := ""
		if ok {
			got = fmt.Sprintf("%v %d %v", p.batched, p.fixed, p.shape)
		}
		if got != tt.want {
			t.Errorf("%v in %s: %q, want %q", tt.row, tt.typ, got, tt.want)
		}
		if ok && elems(p.shape) != elems(tt.row) {
			t.Errorf("%v in %s: %v has another number of elements", tt.row, tt.typ, p.shape)
		}
	}
	if p, _ := fit(scalar("x", "float").dims(nil), nil); p.batched || len(p.shape) != 0 {
		t.Errorf("a number in a scalar: %v", p)
	}
}

// A size set by the user for an open axis is equivalent to one in the model.
func TestDimsAreSizesOfOpenAxes(t *testing.T) {
	dims := input("x", "float[batch,seq]").dims(map[string]int64{"batch": 4})
	if p, ok := fit(dims, []int64{7}); !ok || p.fixed != 4 || !slices.Equal(p.shape, []int64{7}) {
		t.Errorf("%v %v", p, ok)
	}
}

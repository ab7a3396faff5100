package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// All of F(2×2, 3×3) agrees with the definition.
func TestWinogradIsConvolution(t *testing.T) {
	const groups, width, left = 3, 19, 2
	r := rand.New(rand.NewPCG(1, 5))
	w := random(r, 9)
	var rows [8][]float32
	for i := range rows {
		rows[i] = random(r, width)
	}
	tiles := groups * WinogradGroup
	v, u := make([]float32, WinogradTile*tiles), make([]float32, WinogradTile)
	WinogradInput(v, tiles, &rows, left, WinogradMask(left, width, groups))
	WinogradWeights(u, 1, w)
	for i := range v {
		v[i] *= u[i/tiles]
	}
	var got [4][]float32
	for i := range got {
		got[i] = make([]float32, tiles)
	}
	WinogradOutput(&got, v, tiles, groups, 0.5)
	for i, row := range got {
		for x, y := range row {
			want := 0.5
			for k := range 9 {
				if c := x + k%3 - left; c >= 0 && c < width {
					want += float64(w[k]) * float64(rows[i/2*4+i%2+k/3][c])
				}
			}
			if math.Abs(float64(y)-want) > 1e-5 {
				t.Fatalf("row %d, column %d: got %v, want %v", i, x, y, want)
			}
		}
	}
}

func FuzzWinogradInput(f *testing.F) {
	for i := range uint8(8) {
		f.Add(uint64(i), i, i, 3*i)
	}
	f.Fuzz(func(t *testing.T, seed uint64, groups, left, width uint8) {
		r := rand.New(rand.NewPCG(seed, 6))
		mask := WinogradMask(int(left%9), int(width), 1+int(groups%6))
		step := len(mask) + r.IntN(9)
		var rows [8][]float32
		for i := range rows {
			rows[i] = random(r, max(int(width), 1))
		}
		got := random(r, WinogradTile*step)
		want := slices.Clone(got)
		WinogradInput(got, step, &rows, int(left%9), mask)
		winogradInputGo(want, step, &rows, int(left%9), mask)
		if !slices.Equal(got, want) {
			t.Errorf("%d columns, %d before them: got %v, want %v", width, left, got, want)
		}
	})
}

func FuzzWinogradOutput(f *testing.F) {
	for i := range uint8(6) {
		f.Add(uint64(i), i)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		r := rand.New(rand.NewPCG(seed, 7))
		groups := 1 + int(n%6)
		step := groups*WinogradGroup + r.IntN(9)
		m, first := random(r, WinogradTile*step), float32(r.NormFloat64())
		var got, want [4][]float32
		for i := range got {
			got[i] = random(r, groups*WinogradGroup+3)
			want[i] = slices.Clone(got[i])
		}
		WinogradOutput(&got, m, step, groups, first)
		winogradOutputGo(&want, m, step, groups, first)
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("row %d: got %v, want %v", i, got[i], want[i])
			}
		}
	})
}

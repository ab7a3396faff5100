package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// All of F(2×2, 3×3) agrees with the definition, for each channel.
func TestWinogradIsConvolution(t *testing.T) {
	const tiles, channels = 3, 2 * WinogradChannels
	const line = (2*tiles + 2) * channels
	r := rand.New(rand.NewPCG(1, 5))
	w, x, first := random(r, 9), random(r, 4*line), random(r, channels)
	v, u := make([]float32, WinogradTile*tiles*channels), make([]float32, WinogradTile)
	WinogradInput(v, tiles*channels, x, line, channels, tiles)
	WinogradWeights(u, 1, w)
	for i := range v {
		v[i] *= u[i/(tiles*channels)]
	}
	got := make([]float32, 2*2*tiles*channels)
	WinogradOutput(got, 2*tiles*channels, v, tiles*channels, channels, tiles, first)
	for i, y := range got {
		row, column, c := i/channels/(2*tiles), i/channels%(2*tiles), i%channels
		want := float64(first[c])
		for k := range 9 {
			want += float64(w[k]) * float64(x[(row+k/3)*line+(column+k%3)*channels+c])
		}
		if math.Abs(float64(y)-want) > 1e-5 {
			t.Fatalf("row %d, column %d, channel %d: got %v, want %v", row, column, c, y, want)
		}
	}
}

func FuzzWinogradInput(f *testing.F) {
	for i := range uint8(8) {
		f.Add(uint64(i), i, i/2)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n, vectors uint8) {
		r := rand.New(rand.NewPCG(seed, 6))
		tiles, channels := 1+int(n%9), WinogradChannels*(1+int(vectors%4))
		line, step := (2*tiles+2)*channels+r.IntN(9), tiles*channels+r.IntN(9)
		x := random(r, 3*line+(2*tiles+2)*channels)
		got := random(r, WinogradTile*step)
		want := slices.Clone(got)
		WinogradInput(got, step, x, line, channels, tiles)
		winogradInputGo(want, step, x, line, channels, tiles)
		if !slices.Equal(got, want) {
			t.Errorf("%d tiles of %d channels differ", tiles, channels)
		}
	})
}

func FuzzWinogradOutput(f *testing.F) {
	for i := range uint8(8) {
		f.Add(uint64(i), i, i/2)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n, vectors uint8) {
		r := rand.New(rand.NewPCG(seed, 7))
		tiles, channels := 1+int(n%9), WinogradChannels*(1+int(vectors%4))
		line, step := 2*tiles*channels+r.IntN(9), tiles*channels+r.IntN(9)
		m, first := random(r, WinogradTile*step), random(r, channels)
		got := random(r, 2*line+3)
		want := slices.Clone(got)
		WinogradOutput(got, line, m, step, channels, tiles, first)
		winogradOutputGo(want, line, m, step, channels, tiles, first)
		if !slices.Equal(got, want) {
			t.Errorf("%d tiles of %d channels differ", tiles, channels)
		}
	})
}

func TestWinogradPanicsOnShortSlices(t *testing.T) {
	const channels, line = WinogradChannels, 4 * WinogradChannels
	x := make([]float32, WinogradTile*channels)
	for name, f := range map[string]func(){
		"v":        func() { WinogradInput(x[1:], channels, x, line, channels, 1) },
		"x":        func() { WinogradInput(x, channels, x[1:], line, channels, 1) },
		"y":        func() { WinogradOutput(x[:line-1], 2*channels, x, channels, channels, 1, x) },
		"m":        func() { WinogradOutput(x, 2*channels, x[1:], channels, channels, 1, x) },
		"first":    func() { WinogradOutput(x, 2*channels, x, channels, channels, 1, x[:channels-1]) },
		"channels": func() { WinogradInput(x, channels, x, line, channels-1, 1) },
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}

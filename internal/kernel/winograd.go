package kernel

import "fmt"

// Winograd's F(2×2, 3×3) computes four elements of a convolution with 16 multiplications instead of 36 (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2015). Tiles of 4×4 elements, which start two columns and rows
// apart, are transformed to 16 numbers each, and so are the weights; products of the same index are summed over
// channels, and 16 sums are transformed to a tile of 2×2 elements.
//
// Elements of a pixel, and numbers of a tile, are those of all channels: vectors of whole groups of WinogradChannels.
const (
	WinogradTile     = 16 // numbers of a tile
	WinogradChannels = 16 // of a group
)

// WinogradInput transforms a row of tiles: number i of tile t becomes the vector v[i*step+t*channels]. Its four rows of
// pixels are line elements apart, and the first tile starts at x.
func WinogradInput(v []float32, step int, x []float32, line, channels, tiles int) {
	if tiles <= 0 || channels <= 0 {
		return
	}
	checkTiles(step, line, channels)
	within("v", len(v), (WinogradTile-1)*step+tiles*channels)
	within("x", len(x), 3*line+(2*tiles+2)*channels)
	if !winogradInputBulk(v, step, x, line, channels, tiles) {
		winogradInputGo(v, step, x, line, channels, tiles)
	}
}

func checkTiles(step, line, channels int) {
	if step < 0 || line < 0 || channels%WinogradChannels != 0 {
		panic(fmt.Sprintf("kernel: tiles of %d channels, distances %d and %d", channels, step, line))
	}
}

func winogradInputGo(v []float32, step int, x []float32, line, channels, tiles int) {
	// A vector is 16 channels of one pixel, so both transforms are additions without masks or shuffles. With vectors of
	// eight tiles of one channel, they took as long as the products.
	for at := range tiles * channels {
		first := at/channels*2*channels + at%channels
		var tile [4][4]float32
		for r := range 4 {
			for c := range 4 {
				tile[r][c] = x[first+r*line+c*channels]
			}
		}
		for r := range 4 {
			u := winogradStep(tile[0], tile[1], tile[2], tile[3], r)
			for c := range 4 {
				v[(4*r+c)*step+at] = winogradNumber(u[0], u[1], u[2], u[3], c)
			}
		}
	}
}

// winogradStep transforms along the rows, winogradNumber along the columns.
func winogradStep(a, b, c, d [4]float32, i int) (u [4]float32) {
	for j := range u {
		u[j] = winogradNumber(a[j], b[j], c[j], d[j], i)
	}
	return u
}

func winogradNumber(a, b, c, d float32, i int) float32 {
	switch i {
	case 0:
		return a - c
	case 1:
		return b + c
	case 2:
		return c - b
	}
	return b - d
}

// WinogradOutput computes two rows of pixels, which are line elements apart, from the sums of a row of tiles, of which
// number i of tile t is the vector m[i*step+t*channels], and adds first, which has all channels.
func WinogradOutput(y []float32, line int, m []float32, step, channels, tiles int, first []float32) {
	if tiles <= 0 || channels <= 0 {
		return
	}
	checkTiles(step, line, channels)
	within("y", len(y), line+2*tiles*channels)
	within("m", len(m), (WinogradTile-1)*step+tiles*channels)
	within("first", len(first), channels)
	if !winogradOutputBulk(y, line, m, step, channels, tiles, first) {
		winogradOutputGo(y, line, m, step, channels, tiles, first)
	}
}

func winogradOutputGo(y []float32, line int, m []float32, step, channels, tiles int, first []float32) {
	for at := range tiles * channels {
		var upper, lower [4]float32
		for j := range 4 {
			sum := func(i int) float32 { return m[(4*i+j)*step+at] }
			upper[j] = sum(0) + sum(1) + sum(2)
			lower[j] = sum(1) - sum(2) - sum(3)
		}
		to := at/channels*2*channels + at%channels
		for r, s := range [2][4]float32{upper, lower} {
			y[r*line+to] = s[0] + s[1] + s[2] + first[at%channels]
			y[r*line+to+channels] = s[1] - s[2] - s[3] + first[at%channels]
		}
	}
}

// WinogradWeights writes number i of a kernel of 3×3 weights to u[i*step].
func WinogradWeights(u []float32, step int, w []float32) {
	checkLen("w", len(w), 9)
	within("u", len(u), (WinogradTile-1)*step+1)
	var rows [3][4]float32 // transformed along the columns
	for r := range rows {
		a, b, c := w[3*r], w[3*r+1], w[3*r+2]
		rows[r] = [4]float32{a, (a + b + c) / 2, (a - b + c) / 2, c}
	}
	for j := range 4 {
		a, b, c := rows[0][j], rows[1][j], rows[2][j]
		for i, x := range [4]float32{a, (a + b + c) / 2, (a - b + c) / 2, c} {
			u[(4*i+j)*step] = x
		}
	}
}

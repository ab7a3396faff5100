package kernel

import "fmt"

// Winograd's F(2×2, 3×3) computes four elements of a convolution with 16 multiplications instead of 36 (Lavin and Gray, "Fast Algorithms
// for Convolutional Neural Networks", 2015). Tiles of 4×4 elements, which start two columns and rows apart, are transformed to 16 numbers
// each, and so are the weights; products of the same index are summed over channels, and 16 sums are transformed to a tile of 2×2 elements.
//
// Tiles are in groups of eight: four adjacent ones of one row of tiles, and four of another.
const (
	WinogradTile  = 16 // numbers of a tile
	WinogradGroup = 8  // tiles of a group
)

// WinogradMask has -1 for the columns inside rows of width elements, of which the tiles of groups start left columns before the first one.
func WinogradMask(left, width, groups int) []int32 {
	mask := make([]int32, WinogradGroup*groups+2)
	for i := range mask {
		if i >= left && i < left+width {
			mask[i] = -1
		}
	}
	return mask
}

// WinogradInput transforms groups of tiles: number i of tile t becomes v[i*step+t]. rows are the four rows under the upper tiles, and then
// those under the others. Tiles start left columns before them; columns excluded by mask, which WinogradMask computes, count as 0.
func WinogradInput(v []float32, step int, rows *[8][]float32, left int, mask []int32) {
	tiles := len(mask) - 2
	if tiles <= 0 || tiles%WinogradGroup != 0 || step < 0 || left < 0 {
		panic(fmt.Sprintf("kernel: a mask of %d columns, %d before the first, does not match whole groups", len(mask), left))
	}
	within("v", len(v), (WinogradTile-1)*step+tiles)
	width := 1
	for i, m := range mask {
		if m != 0 {
			width = max(i-left+1, 1)
		}
	}
	for _, row := range rows {
		within("row", len(row), width)
	}
	if !winogradInputBulk(v, step, rows, left, mask) {
		winogradInputGo(v, step, rows, left, mask)
	}
}

func winogradInputGo(v []float32, step int, rows *[8][]float32, left int, mask []int32) {
	for t := range len(mask) - 2 {
		first, half := t/WinogradGroup*WinogradGroup+t%4*2, t%WinogradGroup/4*4
		var tile [4][4]float32
		for r := range 4 {
			for c := range 4 {
				if mask[first+c] != 0 {
					tile[r][c] = rows[half+r][first+c-left]
				}
			}
		}
		for r := range 4 {
			u := winogradStep(tile[0], tile[1], tile[2], tile[3], r)
			for c := range 4 {
				v[(4*r+c)*step+t] = winogradNumber(u[0], u[1], u[2], u[3], c)
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

// WinogradOutput computes groups of output tiles from their sums, of which number i of tile t is m[i*step+t], and adds first. rows are the
// two rows of the upper tiles, and then those of the others.
func WinogradOutput(rows *[4][]float32, m []float32, step, groups int, first float32) {
	if groups <= 0 {
		return
	}
	if step < 0 {
		panic(fmt.Sprintf("kernel: sums %d apart", step))
	}
	within("m", len(m), (WinogradTile-1)*step+groups*WinogradGroup)
	for _, row := range rows {
		within("row", len(row), groups*WinogradGroup)
	}
	if !winogradOutputBulk(rows, m, step, groups, first) {
		winogradOutputGo(rows, m, step, groups, first)
	}
}

func winogradOutputGo(rows *[4][]float32, m []float32, step, groups int, first float32) {
	for t := range groups * WinogradGroup {
		var upper, lower [4]float32
		for j := range 4 {
			at := func(i int) float32 { return m[(4*i+j)*step+t] }
			upper[j] = at(0) + at(1) + at(2)
			lower[j] = at(1) - at(2) - at(3)
		}
		to, half := t/WinogradGroup*WinogradGroup+t%4*2, t%WinogradGroup/4*2
		for r, s := range [2][4]float32{upper, lower} {
			rows[half+r][to] = s[0] + s[1] + s[2] + first
			rows[half+r][to+1] = s[1] - s[2] - s[3] + first
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

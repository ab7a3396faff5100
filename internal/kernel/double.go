package kernel

import "math"

// A strip of the left operand has DoubleRows rows, a panel of the right one DoublePanel columns.
const (
	DoubleRows  = 6
	DoublePanel = 8
)

// GemmDouble adds the product of m×k elements of a and k×n of b to rows of c that are ldc elements apart. Both operands are packed by
// PackDouble: a in strips of DoubleRows, b in panels of DoublePanel.
//
// Every element is one chain of k fused multiply-adds in the order of k, then added to c: its bits depend neither on the CPU nor on m and
// n.
func GemmDouble(c []float64, ldc int, a, b []float64, m, n, k int) {
	if m <= 0 || n <= 0 || k <= 0 {
		return
	}
	within("c", len(c), (m-1)*ldc+n)
	within("a", len(a), grouped(m, DoubleRows)*k)
	within("b", len(b), grouped(n, DoublePanel)*k)
	for j := 0; j < n; j += DoublePanel {
		for i := 0; i < m; i += DoubleRows {
			doubleTile(c[i*ldc+j:], ldc, a[i*k:][:DoubleRows*k], b[j*k:][:DoublePanel*k], min(DoubleRows, m-i), min(DoublePanel, n-j))
		}
	}
}

// grouped is n rounded up to whole groups.
func grouped(n, group int) int { return (n + group - 1) / group * group }

// doubleTile adds a tile, through a buffer if it exceeds c.
func doubleTile(c []float64, ldc int, a, b []float64, rows, cols int) {
	if rows == DoubleRows && cols == DoublePanel && doubleBulk(c, ldc, a, b, true) {
		return
	}
	var tile [DoubleRows * DoublePanel]float64
	if !doubleBulk(tile[:], DoublePanel, a, b, false) {
		doubleTileGo(&tile, a, b)
	}
	for i := range rows {
		row := c[i*ldc:][:cols]
		for j := range row {
			row[j] += tile[i*DoublePanel+j]
		}
	}
}

// doubleTileGo is the twin: the sums of a tile.
func doubleTileGo(tile *[DoubleRows * DoublePanel]float64, a, b []float64) {
	for ; len(a) > 0; a, b = a[DoubleRows:], b[DoublePanel:] {
		for i, x := range a[:DoubleRows] {
			sums := tile[i*DoublePanel:][:DoublePanel]
			for j, y := range b[:DoublePanel] {
				sums[j] = math.FMA(x, y, sums[j])
			}
		}
	}
}

// PackDouble copies an n×k matrix times a factor, whose element (i, k) is src[i*row+k*col], into groups of rows: element (i, k) is copied to
// dst[i/group*group*k + k*group + i%group]. The missing rows of the last group become zero. It makes strips of a left operand and panels of
// a transposed right one.
func PackDouble(dst []float64, group int, src []float64, row, col, n, k int, factor float64) {
	if n <= 0 || k <= 0 {
		return
	}
	within("dst", len(dst), grouped(n, group)*k)
	within("src", len(src), (n-1)*row+(k-1)*col+1)
	for i := 0; i < n; i += group {
		to, rows := dst[i*k:][:group*k], min(group, n-i)
		if rows < group {
			clear(to)
		}
		if row == 1 {
			if rows < DoublePanel || group != DoublePanel || !packEightBulk(to, src[i:], col, k, factor) {
				packDoubleAcross(to, group, src[i:], col, rows, factor)
			}
			continue
		}
		for r := range rows {
			packDoubleAlong(to[r:], group, src[(i+r)*row:], col, k, factor)
		}
	}
}

// packDoubleAcross copies rows contiguous elements per step.
func packDoubleAcross(dst []float64, group int, src []float64, col, rows int, factor float64) {
	for at := 0; len(dst) > 0; dst, at = dst[group:], at+col {
		to := dst[:rows]
		for i, x := range src[at:][:len(to)] {
			to[i] = factor * x
		}
	}
}

// packDoubleAlong copies one row.
func packDoubleAlong(dst []float64, group int, src []float64, col, k int, factor float64) {
	for i := range k {
		dst[i*group] = factor * src[i*col]
	}
}

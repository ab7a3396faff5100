package kernel

// PackPanels copies a k×n matrix, whose element (k, j) is src[k*row+j*col], into panels of 16
// columns that lie panel elements apart: element (k, j) goes to dst[j/16*panel+k*16+j%16]. The
// missing columns of the last panel become zero.
func PackPanels(dst []float32, panel int, src []float32, row, col, k, n int) {
	for j := 0; j < n; j += GemmPanel {
		packPanel(dst[j/GemmPanel*panel:][:k*GemmPanel], src[min(j*col, len(src)):], row, col, min(GemmPanel, n-j))
	}
}

func packPanel(dst, src []float32, row, col, wide int) {
	switch {
	case wide < GemmPanel:
		clear(dst)
		for at := 0; at < len(dst); at += GemmPanel {
			gather(dst[at:at+wide], src[at/GemmPanel*row:], col)
		}
	case col == 1:
		for at := 0; at < len(dst); at += GemmPanel {
			*(*[GemmPanel]float32)(dst[at:]) = [GemmPanel]float32(src[at/GemmPanel*row:])
		}
	default:
		for at := 0; at < len(dst); at += GemmPanel {
			gather(dst[at:at+GemmPanel], src[at/GemmPanel*row:], col)
		}
	}
}

// gather takes every step-th element.
func gather(dst, src []float32, step int) {
	for i := range dst {
		dst[i] = src[i*step]
	}
}

// PackStrips copies an m×k matrix, whose element (i, k) is src[i*row+k*col], into strips of R =
// GemmRows rows: element (i, k) goes to dst[i/R*R*k+k*R+i%R]. The missing rows of the last strip
// are left as they are.
func PackStrips(dst, src []float32, row, col, m, k int) {
	high := GemmRows()
	for i := 0; i < m; i += high {
		strip, rows := dst[i*k:], min(high, m-i)
		for at := range k {
			gather(strip[at*high:at*high+rows], src[i*row+at*col:], row)
		}
	}
}

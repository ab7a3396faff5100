package kernel

// PackPanels copies a k×n matrix, whose element (k, j) is src[k*row+j*col], into panels of 16 columns that are panel
// elements apart: element (k, j) is copied to dst[j/16*panel+k*16+j%16]. The missing columns of the last panel become
// zero.
func PackPanels(dst []float32, panel int, src []float32, row, col, k, n int) {
	p := panelPack{dst, panel, src, row, col, k, n}
	if k == 0 || n == 0 {
		return
	}
	within("dst", len(dst), (n-1)/GemmPanel*panel+k*GemmPanel)
	within("src", len(src), (k-1)*row+(n-1)*col+1)
	p.plain(p.bulk())
}

// panelPack is one call of PackPanels.
type panelPack struct {
	dst      []float32
	panel    int
	src      []float32
	row, col int
	k, n     int
}

// plain packs the elements that bulk did not: the first steps of the first columns are done.
func (p *panelPack) plain(steps, cols int) {
	for j := 0; j < p.n; j += GemmPanel {
		from := 0
		if j < cols {
			from = steps
		}
		for k := from; k < p.k; k++ {
			panel := p.dst[j/GemmPanel*p.panel+k*GemmPanel:][:GemmPanel]
			wide := min(GemmPanel, p.n-j)
			gather(panel[:wide], p.src[k*p.row+j*p.col:], p.col)
			// The surplus columns are multiplied, too.
			clear(panel[wide:])
		}
	}
}

// gather copies every step-th element.
func gather(dst, src []float32, step int) {
	if step == 1 {
		copy(dst, src)
		return
	}
	for i := range dst {
		dst[i] = src[i*step]
	}
}

// PackStrips copies an m×k matrix, whose element (i, k) is src[i*row+k*col], into strips of R = GemmRows rows: element
// (i, k) is copied to dst[i/R*R*k+k*R+i%R]. The missing rows of the last strip are unchanged.
func PackStrips(dst, src []float32, row, col, m, k int) {
	packStrips(GemmRows(), dst, src, row, col, m, k)
}

func packStrips(high int, dst, src []float32, row, col, m, k int) {
	if m == 0 || k == 0 {
		return
	}
	within("dst", len(dst), (m+high-1)/high*high*k)
	within("src", len(src), (m-1)*row+(k-1)*col+1)
	// All strips before the next part: packing columns of one strip at a time reached 2 GB/s, as the next column is on
	// another page; now it is 8 or more.
	for part := 0; part < high; part += stripPart {
		p := stripPack{dst, high, src, row, col, m, k, part}
		p.plain(p.bulk())
	}
}

// stripPart is the number of rows of a strip that are packed at once.
const stripPart = 6

// stripPack packs some rows of all strips: stripPart of each, from row part on.
type stripPack struct {
	dst      []float32
	high     int
	src      []float32
	row, col int
	m, k     int
	part     int
}

// plain packs the elements that bulk did not: the first steps of the first strips are done.
func (p *stripPack) plain(steps, strips int) {
	for i := p.part; i < p.m; i += p.high {
		from := 0
		if i/p.high < strips {
			from = steps
		}
		for k := from; k < p.k; k++ {
			at := i/p.high*p.high*p.k + k*p.high + p.part
			gather(p.dst[at:][:min(stripPart, p.m-i)], p.src[i*p.row+k*p.col:], p.row)
		}
	}
}

package kernel

// PackQuads packs a k×n matrix of bytes, whose element (k, j) is src[k*row+j*col], for GemmInt: panels are panel bytes
// apart, with k rounded up to a multiple of 4. Every byte is XORed with flip, 0x80 to convert uint8 to int8 (minus
// 128). Missing elements of the last panel and quad are 0. A panel of rows of 16 elements may be packed in place.
func PackQuads(dst []byte, panel int, src []byte, row, col, k, n int, flip byte) {
	if k == 0 || n == 0 {
		return
	}
	within("dst", len(dst), (n-1)/GemmPanel*panel+(k+GemmQuad-1)/GemmQuad*GemmQuad*GemmPanel)
	within("src", len(src), (k-1)*row+(n-1)*col+1)
	p := quadPack{dst, panel, src, row, col, k, n, flip}
	p.plain(p.bulk())
}

// quadPack is one call of PackQuads.
type quadPack struct {
	dst      []byte
	panel    int
	src      []byte
	row, col int
	k, n     int
	flip     byte
}

// plain packs the elements that bulk did not: the first steps of the first columns are done.
func (p *quadPack) plain(steps, cols int) {
	for j := 0; j < p.n; j += GemmPanel {
		from := 0
		if j < cols {
			from = steps
		}
		for k := from; k < p.k; k += GemmQuad {
			// A word has four steps of k of a column, the operand of VPDPBUSD and VPMADDUBSW.
			quads := p.quads(k, j)
			copy(p.dst[j/GemmPanel*p.panel+k*GemmPanel:], quads[:])
		}
	}
}

// quads are four steps of k of a panel. They are complete before any is stored, as dst may be src.
func (p *quadPack) quads(k, j int) (quads [GemmQuad * GemmPanel]byte) {
	for q := range min(GemmQuad, p.k-k) {
		src := p.src[(k+q)*p.row+j*p.col:]
		for c := range min(GemmPanel, p.n-j) {
			quads[c*GemmQuad+q] = src[c*p.col] ^ p.flip
		}
	}
	return quads
}

// QuadSums adds the columns of panels written by PackQuads to sums, as int8: k rows, a multiple of 4.
func QuadSums(sums []int32, b []byte, panel, k int) {
	if k == 0 || len(sums) == 0 {
		return
	}
	within("b", len(b), (len(sums)-1)/GemmPanel*panel+k*GemmPanel)
	n := quadSumsBulk(sums, b, panel, k)
	quadSumsGo(sums[n:], b[n/GemmPanel*panel:], panel, k)
}

func quadSumsGo(sums []int32, b []byte, panel, k int) {
	for j := range sums {
		column := b[j/GemmPanel*panel+j%GemmPanel*GemmQuad:]
		for i := range k {
			sums[j] += int32(int8(column[i/GemmQuad*GemmQuad*GemmPanel+i%GemmQuad]))
		}
	}
}

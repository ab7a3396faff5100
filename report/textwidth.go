package report

// Widths of the characters from space to tilde in Helvetica, in thousandths of the font's size:
// Adobe Font Metrics, Core 14 fonts. Arial and Liberation Sans have the same widths.
var helvetica = [...]int{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, // space to /
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, // 0 to ?
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, // @ to O
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, // P to _
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, // ` to o
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584, // p to ~
}

// textWidth estimates the width of s in a font of the given size. Characters beyond ASCII count as
// one em, the width of most ideographs and of the ellipsis.
func textWidth(s string, size float64) float64 {
	n := 0
	for _, r := range s {
		if i := int(r) - ' '; i >= 0 && i < len(helvetica) {
			n += helvetica[i]
		} else {
			n += 1000
		}
	}
	return float64(n) / 1000 * size
}

// widest is the largest width of the labels.
func widest(ts []tick, size float64) float64 {
	w := 0.0
	for _, t := range ts {
		w = max(w, textWidth(t.label, size))
	}
	return w
}

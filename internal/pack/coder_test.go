package pack

import "testing"

// In small containers repetitions are coded by the better one of two levels of Zstandard, which is not always the same
// one.
func TestSlowLevelIsUsedWhereItIsSmaller(t *testing.T) {
	e, better := newEntropy(true), [2]int{}
	for _, f := range stable(20 << 10) {
		in := content(t, f)
		for len(in) >= 512 {
			piece := in[:min(len(in), 512+len(in)/3)]
			in = in[len(piece):]
			if allEqual(piece) {
				continue
			}
			fast, slow := len(e.enc.EncodeAll(piece, nil)), len(e.slow.EncodeAll(piece, nil))
			if fast < slow {
				better[0]++
			} else if slow < fast {
				better[1]++
			}
			if _, out := e.code(match, piece); len(out) != min(fast, slow, len(piece)) {
				t.Errorf("%d bytes: %d, the levels have %d and %d", len(piece), len(out), fast, slow)
			}
		}
	}
	if better[0] == 0 || better[1] == 0 {
		t.Errorf("the levels are the better ones %d times", better)
	}
}

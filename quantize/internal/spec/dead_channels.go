package spec

import "github.com/mcompress/mcompress/pass"

// Magnitudes of channels or blocks. Some are so small that their scale would not be a normal float32, or not a float16
// where scales are stored as such: weight decay leaves magnitudes of 1e-37 to 1e-41 in dead channels. They are stored
// as zeros, with scale 1.
type magnitudes struct {
	dead, all float32 // the largest ones
}

// visible is the ratio of the largest magnitude of a weight to that of a dead channel below which zeros in its place
// may be visible in the outputs: above it, they change the weight by less than float32 rounds its largest element.
const visible = 1 << 24

// add adds the largest magnitude of a channel or block.
func (m *magnitudes) add(peak float32, dead bool) {
	m.all = max(m.all, peak)
	if dead {
		m.dead = max(m.dead, peak)
	}
}

// unfit is a *pass.Unfit if dead channels may not become zeros.
func (m *magnitudes) unfit(tensor string) error {
	if m.dead > 0 && m.all < m.dead*visible {
		return &pass.Unfit{Tensor: tensor, Reason: noScaleOf(m.dead)}
	}
	return nil
}

package elementwise

// A twister is the Mersenne Twister MT19937 (Matsumoto and Nishimura, 1998), which numpy.random.RandomState uses:
// ONNX's tests of Dropout record its numbers.
type twister struct {
	state [624]uint32
	next  int
}

func newTwister(seed uint32) *twister {
	t := &twister{next: 624}
	t.state[0] = seed
	for i := 1; i < len(t.state); i++ {
		prev := t.state[i-1]
		t.state[i] = 1812433253*(prev^prev>>30) + uint32(i)
	}
	return t
}

// uniform is the next number in [0, 1), of 53 bits.
func (t *twister) uniform() float64 {
	high, low := t.word()>>5, t.word()>>6
	return (float64(high)*(1<<26) + float64(low)) / (1 << 53)
}

func (t *twister) word() uint32 {
	if t.next == len(t.state) {
		t.refill()
	}
	y := t.state[t.next]
	t.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (t *twister) refill() {
	const m = 397
	n := len(t.state)
	for i := range t.state {
		y := t.state[i]&0x80000000 | t.state[(i+1)%n]&0x7fffffff
		t.state[i] = t.state[(i+m)%n] ^ y>>1 ^ (y&1)*0x9908b0df
	}
	t.next = 0
}

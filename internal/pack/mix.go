package pack

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// A mixer codes bytes bit by bit: the predictions of several contexts are averaged in the logistic domain by weights
// that follow the prediction error, and the bit is coded arithmetically (Mahoney, Adaptive weighing of context models
// for lossless data compression, Florida Tech. 2005). It is slow, needs no tables in the data, and finds structure in
// little data. All of it is integers.
type mixer struct {
	data       []byte // so far
	partial    uint32 // the bits of the current byte after a leading 1
	place      int    // bits of the current byte
	hashes     [contexts]uint32
	lines      [columns]*line // of the current half of a byte
	nibble     uint32         // the bits of the current half after a leading 1
	tables     [contexts][]line
	shift      uint // of hashes, so that they are indexes of tables
	inputs     [columns]int32
	weights    [][columns]int32
	knownLines int             // lines that were used before
	set        int             // of weights
	active     []uint          // the contexts that are used
	effect     [contexts]int64 // of each on predictions, since the last check
	errors     int64           // of predictions, since the last check
	followed   int             // position in data that the match model predicts, 0 for none
	length     int             // of the match
	starts     []int32
	matches    [64]counter // by length of the match and predicted bit
	matched    *counter    // the current one, nil without a match
}

// contexts is the number of contexts, each with a hash table of lines. The inputs after them are of the match model and
// of a constant, and none: a power of two, so that indexes need no check.
const (
	contexts = 9
	matching = contexts
	constant = contexts + 1
	columns  = 16
)

// A line has the counters of a half of a byte in a context, by the bits before, in one cache line. Number 0 is the hash
// of the context instead.
type line [16]counter

// A counter is the probability of a 1, minus a half, in 22 bits, and the number of bits that it has seen, in 10 bits.
type counter int32

const (
	maxCount    = 250
	checkEvery  = 1 << 10 // bytes after which contexts of little effect are dropped
	half        = 1 << 21
	minLineBits = 8
	maxLineBits = 14
)

func newMixer(n int) *mixer {
	m := &mixer{partial: 1, nibble: 1, weights: make([][columns]int32, 3*(contexts+1))}
	lineBits := uint(min(max(bits.Len(uint(n)), minLineBits), maxLineBits))
	m.shift = 32 - lineBits
	for i := range m.tables {
		m.tables[i] = make([]line, 1<<lineBits)
	}
	for i := range m.weights {
		for j := range m.weights[i] {
			// A quarter in 16 bits.
			m.weights[i][j] = 1 << 14
		}
	}
	m.starts = make([]int32, 1<<lineBits)
	for i := range contexts {
		m.active = append(m.active, uint(i))
	}
	// The encoder and the decoder begin with the same contexts, those of no bytes.
	m.byteDone()
	return m
}

// byteBefore is the byte i before the current one.
func (m *mixer) byteBefore(i int) uint32 {
	if i > len(m.data) {
		return 0
	}
	return uint32(m.data[len(m.data)-i])
}

// byteDone computes the contexts of the next byte.
func (m *mixer) byteDone() {
	c1, c2, c3, c4 := m.byteBefore(1), m.byteBefore(2), m.byteBefore(3), m.byteBefore(4)
	last := c1 | c2<<8 | c3<<16 | c4<<24
	for i, c := range [contexts]uint32{
		0,
		c1,
		c1 | c2<<8,
		last & 0xffffff,
		last,
		last ^ (m.byteBefore(5)|m.byteBefore(6)<<8)*0x2f0b4c47,
		c4 | m.byteBefore(8)<<8,
		c4,
		c2 | c3<<8,
	} {
		m.hashes[i] = (c + uint32(i)*0x3d4d51cb + 1) * 0x9e3779b1
		m.hashes[i] ^= m.hashes[i] >> 15
	}
	m.match(last)
	m.halfDone()
}

// halfDone finds the lines of the next half of a byte. A line of another context is cleared.
func (m *mixer) halfDone() {
	m.knownLines, m.nibble = 0, 1
	var hashes, checks [contexts]counter // all lines are read before a branch depends on one
	for _, i := range m.active {
		// partial is 1 for the first half of a byte, and has its bits for the second one.
		h := (m.hashes[i] + m.partial*0x85ebca6b) * 0x9e3779b1
		l := &m.tables[i][h>>m.shift]
		// Never 0, which an unused line has.
		hashes[i], checks[i], m.lines[i] = counter(h|1), l[0], l
	}
	for _, i := range m.active {
		if checks[i] == hashes[i] {
			m.knownLines++
		} else {
			*m.lines[i] = line{hashes[i]}
		}
	}
}

// match follows the last place with the same four bytes.
func (m *mixer) match(last uint32) {
	if m.followed > 0 && m.data[m.followed] == m.data[len(m.data)-1] {
		m.followed, m.length = m.followed+1, min(m.length+1, 400)
	} else {
		m.followed, m.length = 0, 0
	}
	if len(m.data) < 4 {
		return
	}
	h := last * 0x9e3779b1 >> m.shift
	if m.followed == 0 {
		m.followed = int(m.starts[h]) // 0 if there is none: its length is 0
		// The hash only suggests equal bytes.
		for m.length < 400 && m.length < m.followed && m.data[m.followed-1-m.length] == m.data[len(m.data)-1-m.length] {
			m.length++
		}
		if m.length < 4 {
			m.followed, m.length = 0, 0
		}
	}
	m.starts[h] = int32(len(m.data))
}

// predict returns the probability of a 1 in 16 bits.
func (m *mixer) predict() uint32 {
	rank := m.predictMatch()
	// Weights by how many contexts have been seen before, and by the length of the match: how far a context is to
	// be trusted depends on both.
	m.set = m.knownLines + rank*(contexts+1)
	w, nibble := &m.weights[m.set], m.nibble&15
	sum := 256*int64(w[constant]) + int64(m.inputs[matching])*int64(w[matching])
	for _, i := range m.active {
		// A no-op that removes the bounds checks of arrays of 16.
		i %= columns
		x := m.lines[i][nibble].stretched()
		m.inputs[i] = x
		sum += int64(x) * int64(w[i])
	}
	return squashed(sum >> 16)
}

// predictMatch sets the input of the match model, and returns 0 without a match, 1 and 2 for a short and a long one.
func (m *mixer) predictMatch() int {
	m.matched, m.inputs[matching] = nil, 0
	if m.followed == 0 {
		return 0
	}
	b := uint32(m.data[m.followed]) | 256
	// The predicted byte has other first bits than the current one: the match has ended within it.
	if b>>(8-m.place) != m.partial {
		return 0
	}
	n := bits.Len(uint(m.length)) // 3 to 9
	// By the length in halves of powers of two: the counter learns how often such matches are right.
	m.matched = &m.matches[2*(n*2+m.length>>(n-2)&1)+int(b>>(7-m.place)&1)]
	m.inputs[matching] = m.matched.stretched()
	if m.length > 15 {
		return 2
	}
	return 1
}

// update learns the bit, whose probability p was predicted.
func (m *mixer) update(bit, p uint32) {
	e := int64(bit<<16) - int64(p)
	m.errors += max(e, -e)
	target := int64(bit)*(2*half-1) - half
	w, nibble := &m.weights[m.set], m.nibble&15
	// The learning rate, 7/2^18 of the error in 16 bits.
	e *= 7
	for _, i := range m.active {
		i %= columns
		w[i] += int32((int64(m.inputs[i])*e + 1<<17) >> 18)
		m.lines[i][nibble].count(target)
	}
	w[constant] += int32((256*e + 1<<17) >> 18)
	if m.matched != nil {
		w[matching] += int32((int64(m.inputs[matching])*e + 1<<17) >> 18)
		m.matched.count(target)
	}
	m.partial, m.nibble = m.partial<<1|bit, m.nibble<<1|bit
	switch m.place++; m.place {
	case 4:
		m.halfDone()
	case 8:
		m.data = append(m.data, byte(m.partial))
		m.partial, m.place = 1, 0
		m.drop()
		m.byteDone()
	}
}

// drop adds up the effects of the contexts on the last bit of bytes, and at times drops those with little: less than
// 1/16 of all if the bytes are noisy, as exponents are; and else, as structure may follow that only long contexts have,
// 1/64.
func (m *mixer) drop() {
	for _, i := range m.active {
		x := int64(m.inputs[i]) * int64(m.weights[m.set][i])
		m.effect[i] += max(x, -x) >> 8
	}
	// At positions that depend on the data alone, so that the decoder drops the same contexts.
	if len(m.data)%checkEvery > 0 {
		return
	}
	total := int64(0)
	for _, x := range m.effect {
		total += x
	}
	least := total / 64
	if m.errors > checkEvery*8<<16/16 {
		least = total / 16
	}
	m.active = slices.DeleteFunc(m.active, func(i uint) bool { return m.effect[i] < least })
	m.inputs, m.effect, m.errors = [columns]int32{}, [contexts]int64{}, 0
}

// count moves a counter towards target, the probability of the bit minus a half, the less the more it has seen.
func (c *counter) count(target int64) {
	n := *c & 1023
	d := (target - int64(*c>>10)) * int64(reciprocals[byte(n)]) >> 16
	// The count stops at maxCount without a branch: n-maxCount has the sign bit until then.
	*c += counter(d)<<10 + counter(uint32(n-maxCount)>>31)
}

// stretched is the probability in the logistic domain.
func (c counter) stretched() int32 { return int32(stretches[(c>>20+2048)&4095]) }

// reciprocals are 1/(n+1.5) in 16 bits.
var reciprocals = func() (r [256]uint16) {
	for n := range r {
		r[n] = uint16((2 << 16) / (2*n + 3))
	}
	return r
}()

// squashes has 2^16 / (1 + exp(-x / 256)) for x of -2047 to 2047.
var squashes, stretches = func() (s [4096]uint32, t [4096]int16) {
	// exp(1/256) in 62 bits, by its series
	power, step := uint64(1)<<40, uint64(1<<40)+1<<32+1<<23+1<<23/384 // exp(1/256)·2^40
	for x := range 2048 {
		p := uint32((uint64(1) << 56) / (uint64(1)<<40 + power)) // 2^16/(1+exp(x/256))
		s[2047-x+1], s[min(2048+x, 4095)] = max(p, 1), min(1<<16-p, 1<<16-1)
		hi, lo := bits.Mul64(power, step)
		power = hi<<24 | lo>>40
	}
	s[0] = s[1]
	x := 0
	for p := range t {
		for x < 4095 && s[x] < uint32(p)<<4+8 {
			x++
		}
		t[p] = int16(x - 2048)
	}
	return s, t
}()

func squashed(x int64) uint32 { return squashes[min(max(x, -2047), 2047)+2048] }

// mixed appends the code of in to dst.
func mixed(dst, in []byte) []byte {
	m := newMixer(len(in))
	low, high := uint32(0), ^uint32(0)
	for _, b := range in {
		for i := 7; i >= 0; i-- {
			p := m.predict()
			// The interval is divided in proportion to the probability of a 1, its lower part.
			middle := low + uint32(uint64(high-low)*uint64(p)>>16)
			bit := uint32(b) >> i & 1
			if bit == 1 {
				high = middle
			} else {
				low = middle + 1
			}
			// The first byte of the interval is decided.
			for (low^high)>>24 == 0 {
				dst = append(dst, byte(high>>24))
				low, high = low<<8, high<<8|255
			}
			m.update(bit, p)
		}
	}
	// Two bytes are within the last interval; unmixed reads zeros after the end.
	return append(dst, byte(high>>24), byte(high>>16))
}

// unmixed fills out with the bytes that in is the code of.
func unmixed(out, in []byte) {
	m := newMixer(len(out))
	low, high := uint32(0), ^uint32(0)
	var tail [4]byte
	copy(tail[:], in)
	code, next := binary.BigEndian.Uint32(tail[:]), min(4, len(in))
	for i := range out {
		for range 8 {
			p := m.predict()
			middle := low + uint32(uint64(high-low)*uint64(p)>>16)
			bit := uint32(0)
			if code <= middle {
				bit, high = 1, middle
			} else {
				low = middle + 1
			}
			for (low^high)>>24 == 0 {
				low, high, code = low<<8, high<<8|255, code<<8
				if next < len(in) {
					code |= uint32(in[next])
				}
				next++
			}
			m.update(bit, p)
		}
		out[i] = m.data[i]
	}
}

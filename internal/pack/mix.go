package pack

import (
	"encoding/binary"
	"math/bits"
)

// A mixer codes bytes bit by bit: the predictions of several contexts are averaged in the logistic domain by weights that follow the
// prediction error, and the bit is coded arithmetically (Mahoney, Adaptive weighing of context models for lossless data compression, Florida
// Tech. 2005). It is slow, needs no tables in the data, and finds structure in little data. All of it is integers.
type mixer struct {
	data     []byte // so far
	partial  uint32 // the bits of the current byte after a leading 1
	place    int    // bits of the current byte
	hashes   [contexts]uint32
	slots    [contexts]*uint32 // of the current bit
	tables   [contexts][]uint32
	shift    uint // of hashes, so that they are indexes of tables
	inputs   [contexts + 2]int32
	weights  [][contexts + 2]int32
	set      int // of weights
	followed int // position in data that the match model predicts, 0 for none
	length   int // of the match
	starts   []int32
	matches  [64]uint32 // counters by length of the match and predicted bit
	expected int        // predicted bit, -1 without a match
}

// contexts is the number of contexts, each with a hash table of counters.
const contexts = 9

// A counter is a probability of 22 bits and the number of bits that it has seen, of 10 bits.
const (
	newCounter   = 1 << 31
	maxCount     = 250
	maxTableBits = 18
)

func newMixer(n int) *mixer {
	m := &mixer{partial: 1, expected: -1, weights: make([][contexts + 2]int32, 3*(contexts+1))}
	tableBits := uint(min(max(bits.Len(uint(n))+4, 12), maxTableBits))
	m.shift = 32 - tableBits
	for i := range m.tables {
		m.tables[i] = make([]uint32, 1<<tableBits)
		for j := range m.tables[i] {
			m.tables[i][j] = newCounter
		}
	}
	for i := range m.matches {
		m.matches[i] = newCounter
	}
	for i := range m.weights {
		for j := range m.weights[i] {
			m.weights[i][j] = 1 << 14
		}
	}
	m.starts = make([]int32, 1<<tableBits)
	m.byteDone()
	return m
}

// at is the byte i before the current one.
func (m *mixer) at(i int) uint32 {
	if i > len(m.data) {
		return 0
	}
	return uint32(m.data[len(m.data)-i])
}

// byteDone computes the contexts of the next byte.
func (m *mixer) byteDone() {
	c1, c2, c3, c4 := m.at(1), m.at(2), m.at(3), m.at(4)
	last := c1 | c2<<8 | c3<<16 | c4<<24
	for i, c := range [contexts]uint32{
		0,
		c1,
		c1 | c2<<8,
		last & 0xffffff,
		last,
		last ^ (m.at(5)|m.at(6)<<8)*0x2f0b4c47,
		c4 | m.at(8)<<8,
		c4,
		c2 | c3<<8,
	} {
		m.hashes[i] = (c + uint32(i)*0x3d4d51cb + 1) * 0x9e3779b1
		m.hashes[i] ^= m.hashes[i] >> 15
	}
	m.match(last)
}

// match follows the last place with the same four bytes.
func (m *mixer) match(last uint32) {
	if m.followed > 0 && m.followed < len(m.data) && m.data[m.followed] == m.data[len(m.data)-1] {
		m.followed, m.length = m.followed+1, min(m.length+1, 400)
	} else {
		m.followed, m.length = 0, 0
	}
	if len(m.data) < 4 {
		return
	}
	h := last * 0x9e3779b1 >> m.shift
	if m.followed == 0 {
		if m.followed = int(m.starts[h]); m.followed > 0 {
			for m.length < 400 && m.length < m.followed && m.data[m.followed-1-m.length] == m.data[len(m.data)-1-m.length] {
				m.length++
			}
			if m.length < 4 {
				m.followed, m.length = 0, 0
			}
		}
	}
	m.starts[h] = int32(len(m.data))
}

// predict returns the probability of a 1 in 16 bits.
func (m *mixer) predict() uint32 {
	known := 0
	for i := range m.tables {
		h := (m.hashes[i] + m.partial*0x85ebca6b) * 0x9e3779b1
		slot := &m.tables[i][h>>m.shift]
		m.slots[i] = slot
		m.inputs[i] = 0
		if *slot&1023 > 0 {
			known++
			m.inputs[i] = stretched(*slot >> 20)
		}
	}
	m.expected = -1
	m.inputs[contexts] = 0
	rank := 0
	if m.followed > 0 {
		b := uint32(m.data[m.followed]) | 256
		if b>>(8-m.place) == m.partial {
			m.expected = int(b >> (7 - m.place) & 1)
			m.inputs[contexts] = stretched(*m.matchCounter() >> 20)
			rank = 1
			if m.length > 15 {
				rank = 2
			}
		}
	}
	m.inputs[contexts+1] = 256
	m.set = known + rank*(contexts+1)
	sum := int64(0)
	for i, w := range m.weights[m.set] {
		sum += int64(m.inputs[i]) * int64(w)
	}
	return squashed(sum >> 16)
}

func (m *mixer) matchCounter() *uint32 {
	return &m.matches[2*min(bits.Len(uint(m.length))*2+m.length>>max(0, bits.Len(uint(m.length))-2)&1, 31)+m.expected]
}

// update learns the bit, whose probability p was predicted.
func (m *mixer) update(bit, p uint32) {
	e := int64(bit<<16) - int64(p)
	w := &m.weights[m.set]
	for i := range w {
		w[i] += int32((int64(m.inputs[i])*e*7 + 1<<17) >> 18)
	}
	for _, slot := range m.slots {
		count(slot, bit)
	}
	if m.expected >= 0 {
		count(m.matchCounter(), bit)
	}
	m.partial = m.partial<<1 | bit
	if m.place++; m.place == 8 {
		m.data = append(m.data, byte(m.partial))
		m.partial, m.place = 1, 0
		m.byteDone()
	}
}

// count moves a counter towards the bit, the less the more it has seen.
func count(c *uint32, bit uint32) {
	n, p := *c&1023, *c>>10
	if bit == 1 {
		p += uint32(uint64(1<<22-1-p) * uint64(reciprocals[n]) >> 16)
	} else {
		p -= uint32(uint64(p) * uint64(reciprocals[n]) >> 16)
	}
	if n < maxCount {
		n++
	}
	*c = p<<10 | n
}

// reciprocals are 1/(n+1.5) in 16 bits.
var reciprocals = func() (r [maxCount + 1]uint32) {
	for n := range r {
		r[n] = uint32((2 << 16) / (2*n + 3))
	}
	return r
}()

// squashes has 2^16 / (1 + exp(-x / 256)) for x of -2047 to 2047.
var squashes, stretches = func() (s [4096]uint32, t [4096]int32) {
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
		t[p] = int32(x - 2048)
	}
	return s, t
}()

func stretched(p uint32) int32 { return stretches[p] }

func squashed(x int64) uint32 { return squashes[min(max(x, -2047), 2047)+2048] }

// mixed appends the code of in to dst.
func mixed(dst, in []byte) []byte {
	m := newMixer(len(in))
	low, high := uint32(0), ^uint32(0)
	for _, b := range in {
		for i := 7; i >= 0; i-- {
			p := m.predict()
			middle := low + uint32(uint64(high-low)*uint64(p)>>16)
			bit := uint32(b) >> i & 1
			if bit == 1 {
				high = middle
			} else {
				low = middle + 1
			}
			for (low^high)>>24 == 0 {
				dst = append(dst, byte(high>>24))
				low, high = low<<8, high<<8|255
			}
			m.update(bit, p)
		}
	}
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

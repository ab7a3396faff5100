package spec

import (
	"math"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/pass"
)

// float4Peaks are the values, of the format or beyond, that a block's maximum magnitude may be scaled to. Levels are
// not evenly spaced, so that each is tried.
var float4Peaks = []float32{6, 7, 5.5, 5, 4.5, 4}

// tileCols is how many blocks are quantized together.
const tileCols = kernel.BlockCols

// A float4Quantizer computes quantized values and scales of blocks. Neighbouring blocks are the columns of a tile.
type float4Quantizer struct {
	format kernel.SmallFloat
	peaks  []float32
	stride int // between the elements of a block

	x         []float32 // source of the blocks
	quantized []byte    // their quantized values
	scales    []uint16  // of the blocks since begin, float16

	blocks [tileCols]block // of the unfinished tile
	n      int
	tensor string // in errors
	magnitudes
	tile          []float32
	tileQuantized []byte
}

// A block is the index of its first element, and its length.
type block struct{ at, rows int }

func newFloat4Quantizer(f kernel.SmallFloat, size, stride int64) *float4Quantizer {
	return &float4Quantizer{format: f, peaks: float4Peaks, stride: int(stride), tile: make([]float32, size*tileCols),
		tileQuantized: make([]byte, size*tileCols)}
}

// begin sets the source of blocks.
func (k *float4Quantizer) begin(x []float32) {
	if cap(k.quantized) < len(x) {
		k.quantized = make([]byte, len(x))
	}
	k.x, k.quantized, k.scales = x, k.quantized[:len(x)], k.scales[:0]
}

// row adds the blocks that begin at consecutive elements.
func (k *float4Quantizer) row(at, rows int) error {
	for j := range k.stride {
		k.blocks[k.n] = block{at + j, rows}
		if k.n++; k.n < tileCols {
			continue
		}
		if err := k.finish(); err != nil {
			return err
		}
	}
	return nil
}

// finish quantizes the unfinished tile.
func (k *float4Quantizer) finish() error {
	if k.n == 0 {
		return nil
	}
	rows := k.gather()
	tile := k.tile[:rows*tileCols]
	half, scale, err := k.search(tile)
	if err != nil {
		return err
	}
	encoded := k.tileQuantized[:len(tile)]
	k.format.EncodeCols(encoded, tile, scale[:])
	if k.adjacent() {
		for i := range rows {
			copy(k.quantized[k.blocks[0].at+i*k.stride:][:tileCols], encoded[i*tileCols:])
		}
	} else {
		k.scatter(encoded)
	}
	k.scales = append(k.scales, half[:k.n]...)
	k.n = 0
	return nil
}

// adjacent reports whether the rows of the tile are contiguous in the weight.
func (k *float4Quantizer) adjacent() bool {
	first, last := k.blocks[0], k.blocks[tileCols-1]
	return k.n == tileCols && k.stride >= tileCols && last.at-first.at == tileCols-1 && last.rows == first.rows
}

// gather copies blocks into columns, padded with zeros.
func (k *float4Quantizer) gather() (rows int) {
	for _, b := range k.blocks[:k.n] {
		rows = max(rows, b.rows)
	}
	if k.adjacent() {
		for i := range rows {
			copy(k.tile[i*tileCols:][:tileCols], k.x[k.blocks[0].at+i*k.stride:])
		}
		return rows
	}
	clear(k.tile[:rows*tileCols])
	for j, b := range k.blocks[:k.n] {
		for i := range b.rows {
			k.tile[i*tileCols+j] = k.x[b.at+i*k.stride]
		}
	}
	return rows
}

// scatter copies the quantized values of a tile back to the places of its blocks.
func (k *float4Quantizer) scatter(encoded []byte) {
	for j, b := range k.blocks[:k.n] {
		for i := range b.rows {
			k.quantized[b.at+i*k.stride] = encoded[i*tileCols+j]
		}
	}
}

// search computes the MSE-optimal scale of each column.
func (k *float4Quantizer) search(tile []float32) (half [tileCols]uint16, scale [tileCols]float32, err error) {
	var bits [tileCols]uint32
	var peak, least [tileCols]float32
	kernel.ColAbsMaxBits(bits[:], tile)
	for j, b := range bits {
		if reason := NotFinite(b); !reason.None() {
			return half, scale, &pass.Unfit{Tensor: k.tensor, Reason: reason}
		}
		peak[j], least[j], half[j], scale[j] = math.Float32frombits(b), float32(math.Inf(1)), oneHalf, 1
	}
	for _, p := range k.peaks {
		h, s := rounded(peak, p)
		sums := k.format.BlockErrors(tile, &s)
		for j, e := range sums {
			// Errors are those with the scale as it is stored, and a scale that float16 lacks is no candidate.
			if e < least[j] && h[j] != 0 && h[j] < halfInf {
				half[j], scale[j], least[j] = h[j], s[j], e
			}
		}
	}
	// Too small for a scale in float16 is dead, and may become zeros; too large has no form.
	for j, e := range least {
		unscaled := peak[j] > 0 && math.IsInf(float64(e), 1)
		if k.add(peak[j], unscaled && peak[j] < 1); unscaled && peak[j] >= 1 {
			return half, scale, &pass.Unfit{Tensor: k.tensor, Reason: noScaleOf(peak[j])}
		}
	}
	return half, scale, nil
}

// oneHalf is 1 as float16, halfInf is infinity.
const oneHalf, halfInf = 0x3c00, 0x7c00

// rounded are the scales that map peaks to p, as float16 and as float32; 1 where they are 0 or infinite.
func rounded(peak [tileCols]float32, p float32) (half [tileCols]uint16, scale [tileCols]float32) {
	for j, v := range peak {
		scale[j] = v / p
	}
	kernel.F16FromF32(half[:], scale[:])
	kernel.F32FromF16(scale[:], half[:])
	for j, h := range half {
		if h == 0 || h >= halfInf {
			scale[j] = 1
		}
	}
	return half, scale
}

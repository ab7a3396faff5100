package conv

import (
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/spmm"
	"github.com/mcompress/mcompress/internal/kernel"
)

// SparsePixels convolves 8-bit images whose channels are adjacent (NHWC), of one group, with sparse weights. A band of
// rows at a time becomes floats with the channels first, as sparseWeights multiplies them. Sums of integers are exact
// if they are below 2^24.
type SparsePixels struct {
	*Geometry
	Weights *spmm.Matrix // an output channel is a row
	Signed  bool         // the image is int8
	Zero    int32        // zero point of the image
}

// pixelPiece is the number of pixels whose channels are transposed at once.
const pixelPiece = 64

// slot is the size of the memory of a worker for a piece.
func (s *SparsePixels) slot() int64 { return aligned(4 * pixelPiece * int64(max(s.InC, s.OutC))) }

// Work is the size of the scratch memory of Run.
func (s *SparsePixels) Work(workers int) (most int64) {
	for _, b := range s.bands() {
		x, y := b.floats()
		most = max(most, aligned(4*int64(x))+aligned(4*int64(y))+max(b.sparseWork(workers), int64(workers)*s.slot()))
	}
	return most
}

// Run passes the sums of all images to finish, in rows of the channels of consecutive pixels. Workers call it
// concurrently.
func (s *SparsePixels) Run(p *op.Pool, work, x []byte, finish func(sums []float32, pixel int)) {
	// One band after the other, each by all workers: floats of one band are all that exist of the image.
	for image := range s.Batch {
		for _, b := range s.bands() {
			buf := scratch[float32](work)
			nx, ny := b.floats()
			in, out := buf.take(nx), buf.take(ny)
			s.pieces(p, buf, b.inLen(), s.InC, func(row []float32, from, n int) {
				at := (image*s.InArea() + b.first*b.in[1] + from) * s.InC
				// A band of rows at a time, with the channels first. Patches of bytes that are converted for each tile
				// of 32 pixels took 1.26 of the time of dense weights at 90 % zeros, bands take 0.64 (ResNet18's
				// shape).
				kernel.Dequantize(row, x[at:at+len(row)], s.Signed, 1, s.Zero)
				kernel.TransposeInto(in[from:], b.inLen(), row, s.InC, n, s.InC)
			})
			sparseWeights{s.Weights}.convolve(b.Geometry, p, buf,
				job{x: Images[float32]{Values: in}, y: Images[float32]{Values: out}})
			// Quantization needs the channels of a pixel together, as scales are per channel, and finish stores pixels.
			s.pieces(p, buf, b.OutArea(), s.OutC, func(row []float32, from, n int) {
				kernel.TransposeInto(row, s.OutC, out[from:], b.OutArea(), s.OutC, n)
				finish(row, image*s.OutArea()+b.row*b.out[1]+from)
			})
		}
	}
}

// pieces calls f for pieces of n pixels from a pixel on, with memory for their channels.
func (s *SparsePixels) pieces(p *op.Pool, work []byte, pixels, channels int, f func(row []float32, from, n int)) {
	p.Slots(ceilDiv(pixels, pixelPiece), func(i, slot int) {
		n := min(pixelPiece, pixels-i*pixelPiece)
		f(kernel.Words[float32](work[int64(slot)*s.slot():][:s.slot()])[:n*channels], i*pixelPiece, n)
	})
}

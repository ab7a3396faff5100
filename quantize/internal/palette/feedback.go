package palette

import "github.com/mcompress/mcompress/internal/kernel"

// outputs are the output channels of a weight whose inputs have a common mean, which multiplies the sum of the errors
// of a channel. Its elements are rows × channels × run; those of all rows and runs of a channel are summed. Without
// error feedback there are none.
type outputs struct{ rows, channels, run int64 }

// outputsOf are those of the last adjacent axes of a shape that are of outputs.
func outputsOf(shape []int64, axes []int) outputs {
	if len(axes) == 0 {
		return outputs{}
	}
	o, last := outputs{1, 1, 1}, len(axes)-1
	at := axes[last]
	for _, d := range shape[at+1:] {
		o.run *= d
	}
	for ; last >= 0 && axes[last] == at; last, at = last-1, at-1 {
		o.channels *= shape[at]
	}
	for ; at >= 0 && (last < 0 || axes[last] != at); at-- {
		o.rows *= shape[at]
	}
	return o
}

// at is the channel of element i, and the number of the channel's elements from this one on.
func (o outputs) at(i int64) (channel, left int64) {
	run := i / o.run
	return run % o.channels, (o.rows-run/o.channels%o.rows)*o.run - i%o.run
}

// A balancer assigns elements of blocks to entries with error feedback.
type balancer struct {
	*encoding
	carry         []float32 // sums of errors of channels
	floats, under []float32 // scales of blocks, and their inverses
}

// newBalancer assigns up to n blocks at a time. It is nil for a weight without error feedback.
func newBalancer(e *encoding, n int64) *balancer {
	if e.outputs.channels == 0 {
		return nil
	}
	return &balancer{e, make([]float32, e.outputs.channels), make([]float32, n), make([]float32, n)}
}

// assign writes the indices of the entries of c for x, blocks whose first element is element first of the weight.
func (a *balancer) assign(c *kernel.Codebook, indices []byte, x []float32, scales []byte, first int64) {
	b, t := kernel.Blocks{X: x, Scales: a.floats[:len(scales)], Inverse: a.under[:len(scales)], Size: int(a.Block)},
		scaleTable()
	for i, s := range scales {
		b.Scales[i], b.Inverse[i] = t.of[s], t.under[s]
	}
	for i := int64(0); i < int64(len(x)); {
		i += a.part(c, indices, b, i, first+i)
	}
}

// part assigns elements from i on, which is element at of the weight, and returns their number: whole blocks of a row
// or run, or one element.
func (a *balancer) part(c *kernel.Codebook, indices []byte, b kernel.Blocks, i, at int64) int64 {
	o, size := a.outputs, int64(b.Size)
	channel, left := o.at(at)
	n, channels := min(int64(len(b.X))-i, a.Elems-at), int64(1)
	if o.run == 1 {
		n = min(n, o.channels-channel)
	} else {
		n = min(n, o.run-at%o.run, left-kernel.FeedbackRun)
	}
	if n -= n % size; i%size != 0 || n <= 0 {
		n, b = 1, kernel.Blocks{X: b.X[i : i+1], Scales: b.Scales[i/size:][:1], Inverse: b.Inverse[i/size:][:1], Size: 1}
	} else {
		b = kernel.Blocks{X: b.X[i : i+n], Scales: b.Scales[i/size:][:n/size], Inverse: b.Inverse[i/size:][:n/size],
			Size: b.Size}
	}
	if o.run == 1 {
		channels = n
	}
	carry := a.carry[channel:][:channels]
	if left == o.rows*o.run {
		clear(carry)
	}
	if channels < n {
		carry[0] = c.BalanceRun(indices[i:i+n], b, carry[0])
	} else {
		c.BalanceRow(indices[i:i+n], b, carry, int(min(kernel.FeedbackRun, left)))
	}
	return n
}

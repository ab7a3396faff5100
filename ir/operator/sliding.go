package operator

import "github.com/mcompress/mcompress/ir"

// SlidingWindow is the number of positions of the window of an attention whose caches hold the last positions only, as
// com.microsoft's GroupQueryAttention defines them: the size of their axis State.Axis is constant, and at least the
// window. It is 0 for other nodes.
func SlidingWindow(n *ir.Node) int64 {
	if len(Of(n).States) == 0 || n.Int("sliding_window_cache", 0) == 0 {
		return 0
	}
	return max(n.Int("local_window_size", 0), 0)
}

package prune

import "github.com/mcompress/mcompress/prune/internal/coupling"

// leftChannels counts the classes of channels that are left on each axis. A group can lie on several axes with
// different classes, as the parts of one matrix for queries, keys and values do: that some class of a group stays does
// not keep one on each of them.
type leftChannels struct {
	counts []int
	axes   map[coupling.Channel][]int // indices of counts
}

func newLeftChannels(plan *coupling.Plan) *leftChannels {
	l := &leftChannels{axes: map[coupling.Channel][]int{}}
	for i, classes := range plan.Axes() {
		l.counts = append(l.counts, len(classes))
		for _, u := range classes {
			l.axes[u] = append(l.axes[u], i)
		}
	}
	return l
}

// lose removes u, and reports whether it can go: whether each of its axes has another one.
func (l *leftChannels) lose(u coupling.Channel) bool {
	for _, i := range l.axes[u] {
		if l.counts[i] == 1 {
			return false
		}
	}
	for _, i := range l.axes[u] {
		l.counts[i]--
	}
	return true
}

// loseAll removes all of classes, or none if they cannot go together.
func (l *leftChannels) loseAll(classes []coupling.Channel) bool {
	for i, u := range classes {
		if !l.lose(u) {
			l.restore(classes[:i])
			return false
		}
	}
	return true
}

// restore undoes lose.
func (l *leftChannels) restore(classes []coupling.Channel) {
	for _, u := range classes {
		for _, i := range l.axes[u] {
			l.counts[i]++
		}
	}
}

package coupling

import "github.com/mcompress/mcompress/pass"

// A Channel is one channel on one axis somewhere in the graph.
type Channel int32

// classes are sets of channels that are pruned together or not at all.
type classes struct {
	parent  []Channel
	reasons map[Channel]pass.Reason // of roots whose class is kept
}

// fresh returns n channels, each a class of its own.
func (c *classes) fresh(n int64) []Channel {
	us := make([]Channel, n)
	for i := range us {
		us[i] = Channel(len(c.parent))
		c.parent = append(c.parent, us[i])
	}
	return us
}

// root is the representative of u's class.
func (c *classes) root(u Channel) Channel {
	for c.parent[u] != u {
		c.parent[u] = c.parent[c.parent[u]]
		u = c.parent[u]
	}
	return u
}

// join makes one class of those of a and b. If one of them is kept, both are.
func (c *classes) join(a, b Channel) {
	a, b = c.root(a), c.root(b)
	if a == b {
		return
	}
	// The lowest channel represents its class, whatever the order of joins.
	if b < a {
		a, b = b, a
	}
	c.parent[b] = a
	if reason := c.reasons[b]; !reason.None() && c.reasons[a].None() {
		c.reasons[a] = reason
	}
	delete(c.reasons, b)
}

// keep keeps the classes of us. The first reason is recorded.
func (c *classes) keep(us []Channel, reason pass.Reason) {
	for _, u := range us {
		if r := c.root(u); c.reasons[r].None() {
			c.reasons[r] = reason
		}
	}
}

// joinAll joins the channels of two lists of equal length, index by index.
func (c *classes) joinAll(a, b []Channel) {
	for i := range a {
		c.join(a[i], b[i])
	}
}

// foldParts joins the channels at the same index in each of n equal parts of us.
func (c *classes) foldParts(us []Channel, n int64) {
	size := len(us) / int(n)
	for i, u := range us {
		c.join(u, us[i%size])
	}
}

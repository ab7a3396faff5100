// Package coupling finds which channels of a graph fall together: the filters that make a
// channel, the vectors that go along with it, and the columns that read it, through
// residual sums, concatenations, reshapes and whatever else lies between.
//
// Find looks at the graph and reads shapes and small integers only. Plan.Remove rewrites nodes
// and types once somebody has chosen; payloads are the caller's business, and so is what a
// channel is worth.
package coupling

// Package coupling finds groups of channels that have to be pruned together (coupled channels): the filters that make a
// channel, the bias and normalization of it, and the columns that consume it, through residual sums, concatenations,
// reshapes and other operators.
//
// Find reads the graph, shapes and small integers only. Plan.Remove removes chosen channels from nodes and types; the
// caller computes the importance of channels and changes the payloads.
package coupling

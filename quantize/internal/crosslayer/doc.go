// Package crosslayer finds layers behind one another between which channels may be scaled, and
// gives the weights on both sides equal ranges.
//
// It does not know how those weights will be stored.
package crosslayer

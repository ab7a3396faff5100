package prune

import "github.com/mcompress/mcompress/pass"

// Methods are the methods of this package, in the order of help and documentation.
func Methods() []*pass.Method {
	return []*pass.Method{L1, L1Global, L2, Random{}.Method(), NM, Channel, LowRank, Blocks}
}

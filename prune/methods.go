package prune

import "github.com/mcompress/mcompress/pass"

// Methods are the methods of this package, in the order of help and documentation.
func Methods() []*pass.Method {
	return []*pass.Method{l1Method, l1GlobalMethod, l1BlockMethod, l2Method, randomMethod, nmMethod, wandaMethod,
		sparseGPTMethod, channelMethod, headsMethod, ffnMethod, lowRankMethod, layersMethod}
}

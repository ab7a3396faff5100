package main

import (
	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/pass"
)

// methods are all methods.
var methods = mcompress.Methods()

// offered are the methods that a command offers.
func offered(command string) []*pass.Method {
	var ms []*pass.Method
	for _, m := range methods {
		if m.Command == command {
			ms = append(ms, m)
		}
	}
	return ms
}

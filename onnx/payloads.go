package onnx

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Payload is the place of a constant's bytes, which are those of its Spec, in a part.
type Payload struct {
	ir.Spec
	Part   int
	Offset int64
}

// Part is the index in Parts of the file that s is in; -1 if that is none of f's.
func (f *File) Part(s ir.Span) int {
	r, _ := s.R.(*source)
	if r == f.main {
		return 0
	}
	if i := slices.Index(f.folder.seen, r); i >= 0 {
		return i + 1
	}
	return -1
}

// Payloads are the constants whose bytes are in the files as raw_data has them, except for those of up to 1 KiB and
// those in varints. Constants that share bytes have one Payload each.
func (f *File) Payloads() []Payload {
	numbers := map[*source]int{f.main: 0}
	for i, s := range f.folder.seen {
		numbers[s] = i + 1
	}
	var ps []Payload
	seen := map[*ir.Tensor]bool{}
	for v := range f.Model.Values() {
		if v.Const == nil || seen[v.Const] {
			continue
		}
		seen[v.Const] = true
		span, ok := v.Const.Source.(ir.Span)
		if !ok {
			continue
		}
		p := Payload{v.Const.Spec, numbers[span.R.(*source)], span.Off}
		p.Name = v.Name
		ps = append(ps, p)
	}
	return ps
}

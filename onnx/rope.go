package onnx

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/mcompress/mcompress/ir"
)

// A rope is an encoded message whose payloads are still gaps: its size is known
// before any of them is read.
type rope struct {
	parts []part
	n     int64
}

// A part is literal bytes, a run of file bytes, a tensor's payload, or text that is
// known only when the file is written.
type part struct {
	lit    []byte
	chunk  chunk
	tensor *ir.Tensor
	late   func(context.Context) (string, error)
	n      int64
}

func (r *rope) lit(b []byte) {
	r.n += int64(len(b))
	// The number of parts follows that of payloads, not that of fields.
	if k := len(r.parts); k > 0 && r.parts[k-1].lit != nil {
		r.parts[k-1].lit = append(r.parts[k-1].lit, b...)
		r.parts[k-1].n += int64(len(b))
		return
	}
	r.parts = append(r.parts, part{lit: append([]byte{}, b...), n: int64(len(b))})
}

func (r *rope) gap(p part) {
	r.parts = append(r.parts, p)
	r.n += p.n
}

func (r *rope) join(s *rope) {
	for _, p := range s.parts {
		if p.lit != nil {
			r.lit(p.lit)
			continue
		}
		r.gap(p)
	}
}

func (r *rope) chunks(cs []chunk) {
	for _, c := range cs {
		if c.src == nil {
			r.lit(c.lit)
			continue
		}
		r.gap(part{chunk: c, n: c.n})
	}
}

// extra writes back fields that were carried along; x is an extra or nil.
func (r *rope) extra(x any) {
	if cs, ok := x.(extra); ok {
		r.chunks(cs)
	}
}

func (r *rope) varint(n num, v uint64) {
	b := protowire.AppendTag(nil, n, protowire.VarintType)
	r.lit(protowire.AppendVarint(b, v))
}

func (r *rope) fixed32(n num, v uint32) {
	b := protowire.AppendTag(nil, n, protowire.Fixed32Type)
	r.lit(protowire.AppendFixed32(b, v))
}

func (r *rope) text(n num, s string) {
	b := protowire.AppendTag(nil, n, protowire.BytesType)
	r.lit(protowire.AppendString(b, s))
}

// optional writes s unless it is empty.
func (r *rope) optional(n num, s string) {
	if s != "" {
		r.text(n, s)
	}
}

// head writes the tag and length of a field of size bytes that follow.
func (r *rope) head(n num, size int64) {
	b := protowire.AppendTag(nil, n, protowire.BytesType)
	r.lit(protowire.AppendVarint(b, uint64(size)))
}

func (r *rope) message(n num, m *rope) {
	r.head(n, m.n)
	r.join(m)
}

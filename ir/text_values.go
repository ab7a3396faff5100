package ir

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// textElems is the number of elements up to which a tensor's values are written.
const textElems = 8

// initializer writes a constant: type, name and values.
func (p *printer) initializer(v *Value) {
	p.put(v.Const.Spec.String(), " ", identifier(v.Name), " = ")
	p.data(v.Const)
}

// tensor writes a tensor as an attribute's value; its name may be empty.
func (p *printer) tensor(t *Tensor, name string) {
	p.put(t.Spec.String(), " ")
	if name != "" {
		p.put(identifier(name), " ")
	}
	p.put("= ")
	p.data(t)
}

func (p *printer) data(t *Tensor) {
	switch {
	case t.Elems() == 0:
		p.put("{}")
	case t.DType == String:
		p.put(`["elided" : "strings"]`)
	case t.Elems() > textElems:
		p.put(`["elided" : "`, strconv.FormatInt(t.Bytes(), 10), ` bytes"]`)
	case p.err == nil:
		b, err := p.eval.ReadAll(p.ctx, t)
		if err != nil {
			p.err = err
			return
		}
		items := textItems(t.DType, b)
		if t.DType.Bits() == 6 {
			items = items[:t.Elems()] // the last byte may have one more
		}
		p.put("{", strings.Join(items, ", "), "}")
	}
}

// textItems are the items of the typed field for the payload b.
func textItems(dt DType, b []byte) []string {
	if dt.Bits() == 6 {
		return sixBitItems(b)
	}
	size := max(int(dt.Bits()/8), 1)
	if dt == Complex64 || dt == Complex128 {
		size /= 2
	}
	var items []string
	for ; len(b) >= size; b = b[size:] {
		items = append(items, textItem(dt, b[:size]))
	}
	return items
}

func textItem(dt DType, b []byte) string {
	var wide [8]byte
	copy(wide[:], b)
	u := binary.LittleEndian.Uint64(wide[:])
	switch dt {
	case Float, Complex64:
		return textFloat(float64(math.Float32frombits(uint32(u))), 32)
	case Double, Complex128:
		return textFloat(math.Float64frombits(u), 64)
	case Int8, Int16, Int32, Int64:
		// Extends the sign from the width of the element.
		shift := 64 - 8*len(b)
		return strconv.FormatInt(int64(u<<shift)>>shift, 10)
	}
	return strconv.FormatUint(u, 10)
}

// sixBitItems unpacks a stream of 6-bit numbers, lowest bits first.
func sixBitItems(b []byte) []string {
	var items []string
	rest, n := uint32(0), 0
	for _, c := range b {
		rest |= uint32(c) << n
		for n += 8; n >= 6; n -= 6 {
			items = append(items, strconv.Itoa(int(rest&63)))
			rest >>= 6
		}
	}
	return items
}

// textFloat is the shortest number that reads back as f.
func textFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// quoted is s as a string of the syntax; it has no escapes but these two.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// identifier is the name of a value, node or graph, quoted where it would be taken for
// something else.
func identifier(name string) string {
	if typeWord(name) {
		return quoted(name)
	}
	return word(name)
}

// word is a name where a type is not allowed, quoted if it is not made of letters and digits.
func word(name string) string {
	if plain(name) {
		return name
	}
	return quoted(name)
}

func plain(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// typeWord reports a name that begins a type.
func typeWord(name string) bool {
	for _, d := range dtypes {
		if d.name == name {
			return true
		}
	}
	return name == "seq" || name == "map" || name == "optional" || name == "sparse_tensor" || name == "opaque"
}

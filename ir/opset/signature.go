package opset

import (
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Param is a formal parameter of an operator, with its element types.
type Param struct {
	// Var is the type variable. Parameters of one variable have one type, except those that
	// are Mixed. It is empty where the type is fixed.
	Var string
	// Mixed is any number of arguments, each of a type of its own.
	Mixed bool

	types string
	many  bool
}

// Takes reports whether p may be a tensor of type dt, which is one of Float, Float16 and BFloat16.
func (p Param) Takes(dt ir.DType) bool {
	letter, ok := map[ir.DType]string{ir.Float: "f", ir.Float16: "h", ir.BFloat16: "b"}[dt]
	return ok && strings.Contains(p.types, letter)
}

// Tensor reports whether p may be a tensor at all, and not only a sequence, optional or map.
func (p Param) Tensor() bool { return p.types != "s" }

// Params are the formal inputs or outputs of an operator.
type Params []Param

// At is the parameter of argument i: the last one is that of any number of arguments if it is variadic.
func (ps Params) At(i int) (Param, bool) {
	switch last := len(ps) - 1; {
	case i <= last:
		return ps[i], true
	case last >= 0 && ps[last].many:
		return ps[last], true
	}
	return Param{}, false
}

// Signature is the parameters and element types of an operator of the default domain in the given
// opset; ok is false where there is none.
func Signature(op string, version int64) (in, out Params, ok bool) {
	i, ok := slices.BinarySearchFunc(signatures, op, func(h signatureHistory, op string) int { return strings.Compare(h.op, op) })
	if !ok {
		return nil, nil, false
	}
	rows := signatures[i].rows
	for _, row := range slices.Backward(rows) {
		if row.since <= version {
			return params(row.in), params(row.out), true
		}
	}
	return nil, nil, false
}

// A signatureHistory is one operator's signatures; versions are ascending.
type signatureHistory struct {
	op   string
	rows []writtenSignature
}

// A writtenSignature has its parameters in the notation of gen/signatures.py.
type writtenSignature struct {
	since   int64
	in, out string
}

func params(written string) Params {
	var ps Params
	for f := range strings.FieldsSeq(written) {
		name, types, _ := strings.Cut(f, ":")
		p := Param{Var: name, Mixed: strings.HasSuffix(types, "+")}
		p.many = p.Mixed || strings.HasSuffix(types, "*")
		p.types = strings.TrimRight(types, "*+")
		ps = append(ps, p)
	}
	return ps
}

package opset

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
)

// types is a set of element types of tensors, as bits by their DType, and anyOther.
type types uint64

// anyOther is the set of the types that are no tensors: sequences, optional values and maps.
const anyOther types = 1 << 63

func typesOf(dt ir.DType) types { return 1 << dt }

// A Param is a formal parameter of an operator, with its element types.
type Param struct {
	// Var is the type variable. Parameters of one variable have one type, except those that
	// are Mixed. It is empty where the type is fixed.
	Var string
	// Mixed is any number of arguments, each of a type of its own.
	Mixed bool

	types    types
	many     bool
	optional bool
	min      int // number of arguments
}

// Takes reports whether p may be a tensor of type dt.
func (p Param) Takes(dt ir.DType) bool { return p.types&typesOf(dt) != 0 }

// Tensor reports whether p may be a tensor at all, and not only a sequence, optional or map.
func (p Param) Tensor() bool { return p.types != anyOther }

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

// count is the minimum and maximum number of arguments; -1 for any number.
func (ps Params) count() (least, most int) {
	most = len(ps)
	for i, p := range ps {
		if p.min > 0 {
			least = i + p.min
		}
		if p.many {
			most = -1
		}
	}
	return least, most
}

// A signature is the parameters and attributes of an operator in one of its versions.
type signature struct {
	in, out    Params
	attrs      []attribute // sorted by name
	deprecated bool
}

// An attribute is an attribute that an operator has.
type attribute struct {
	name     string
	kind     ir.AttrType
	required bool
}

func (s *signature) attribute(name string) (attribute, bool) {
	i, ok := slices.BinarySearchFunc(s.attrs, name, func(a attribute, name string) int {
		return strings.Compare(a.name, name)
	})
	if !ok {
		return attribute{}, false
	}
	return s.attrs[i], true
}

// Signature is the parameters and element types of an operator in the given opset of its domain, one of ONNX's or
// com.microsoft; ok is false where there is none.
func Signature(id ir.OpID, version int64) (in, out Params, ok bool) {
	s, _ := signatureOf(id, version)
	if s == nil {
		return nil, nil, false
	}
	return s.in, s.out, true
}

// signatureOf is the signature of an operator in an opset, nil if there is none; known reports whether there is one in
// any.
func signatureOf(id ir.OpID, version int64) (s *signature, known bool) {
	name := operator.Name(id)
	i, known := slices.BinarySearchFunc(signatures, name, func(h signatureHistory, op string) int {
		return strings.Compare(h.op, op)
	})
	if !known {
		return nil, false
	}
	for _, row := range slices.Backward(signatures[i].rows) {
		if row.since <= version {
			return row.parse(), true
		}
	}
	return nil, true
}

// A signatureHistory is one operator's signatures; versions are ascending.
type signatureHistory struct {
	op   string
	rows []writtenSignature
}

// A writtenSignature is in the notation of gen/signatures.py.
type writtenSignature struct {
	since          int64
	in, out, attrs string
}

// deprecated is the notation of a version that ended the operator.
const deprecated = "deprecated"

func (w writtenSignature) parse() *signature {
	attrs, ends := strings.CutPrefix(w.attrs, deprecated)
	return &signature{in: params(w.in), out: params(w.out), attrs: attributes(attrs), deprecated: ends}
}

func params(written string) Params {
	var ps Params
	for f := range strings.FieldsSeq(written) {
		// name:SET, with ? for optional, * and + for any number of one and of several types, and a minimum after it.
		name, set, _ := strings.Cut(f, ":")
		digits := len(set) - len(strings.TrimLeft(set, "0123456789"))
		set, option := set[:digits], set[digits:]
		p := Param{Var: name, types: types(typeSets[parseNumber(set)]), min: 1}
		switch {
		case option == "?":
			p.optional, p.min = true, 0
		case option != "":
			p.many, p.Mixed = true, option[0] == '+'
			if option[1:] != "" {
				p.min = parseNumber(option[1:])
			}
		}
		ps = append(ps, p)
	}
	return ps
}

func attributes(written string) []attribute {
	var as []attribute
	for f := range strings.FieldsSeq(written) {
		name, kind, _ := strings.Cut(f, ":")
		plain := strings.TrimSuffix(name, "!")
		as = append(as, attribute{plain, ir.AttrType(parseNumber(kind)), plain != name})
	}
	return as
}

// parseNumber is that of a digit string of the generated table.
func parseNumber(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err)
	}
	return n
}

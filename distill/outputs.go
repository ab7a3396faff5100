package distill

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// pairOutputs returns the teacher's output that belongs to each output of the student: that of the same name, and in
// order those whose names the other model does not have. A teacher may have further outputs.
func pairOutputs(student, teacher []*ir.Value) ([]*ir.Value, error) {
	const remedy = "rename them, or match values with --match and --loss none"
	var pairs []*ir.Value
	for i, at := range ir.Pair(namesOf(student), namesOf(teacher)) {
		y := student[i]
		if at < 0 {
			return nil, fmt.Errorf("the teacher has no output for %s of the student: its outputs are %s; %s",
				typeList(y),
				typeList(teacher...), remedy)
		}
		if !comparable(y, teacher[at]) {
			return nil, fmt.Errorf("output %s of the student cannot be compared with %s of the teacher; %s",
				typeList(y),
				typeList(teacher[at]), remedy)
		}
		pairs = append(pairs, teacher[at])
	}
	return pairs, nil
}

// comparable reports whether two values may have the same shape but for the batch, as far as the models declare it.
func comparable(a, b *ir.Value) bool {
	if a.Type == nil || b.Type == nil || a.Type.Shape == nil || b.Type.Shape == nil {
		return true
	}
	if len(a.Type.Shape) != len(b.Type.Shape) {
		return false
	}
	for i, d := range a.Type.Shape {
		if e := b.Type.Shape[i]; i > 0 && d.Known() && e.Known() && d.N != e.N {
			return false
		}
	}
	return true
}

func namesOf(vs []*ir.Value) (names []string) {
	for _, v := range vs {
		names = append(names, v.Name)
	}
	return names
}

// typeList lists values with their types.
func typeList(vs ...*ir.Value) string {
	var list []string
	for _, v := range vs {
		list = append(list, strings.TrimSpace(v.Name+" "+v.Type.String()))
	}
	return strings.Join(list, ", ")
}

package verify

import (
	"context"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A aliasSession session has the inputs and outputs of another model's session under the names of a model that was
// trained on it.
type aliasSession struct {
	engine.Session
	inputs, outputs map[string]string // names of the other model by those of the trained one
}

// WithNamesOf returns teacher with the names of student: its outputs as ir.Pair has them, and its only input.
func WithNamesOf(teacher, student engine.Session) engine.Session {
	r := &aliasSession{Session: teacher, inputs: map[string]string{}, outputs: map[string]string{}}
	if mine, theirs := student.Inputs(), teacher.Inputs(); len(mine) == 1 && len(theirs) == 1 {
		r.inputs[mine[0].Name] = theirs[0].Name
	}
	mine, theirs := PortNames(student.Outputs()), PortNames(teacher.Outputs())
	for i, at := range ir.Pair(mine, theirs) {
		if at >= 0 {
			r.outputs[mine[i]] = theirs[at]
		}
	}
	return r
}

// Run runs the teacher.
func (r *aliasSession) Run(ctx context.Context, in map[string]*ir.Array, fetch []string) (map[string]*ir.Array, error) {
	args := map[string]*ir.Array{}
	for name, a := range in {
		args[alias(r.inputs, name)] = a
	}
	if len(fetch) == 0 {
		// No names ask for all outputs, which are returned under the student's names, too.
		fetch = PortNames(r.Outputs())
	}
	names := make([]string, len(fetch))
	for i, name := range fetch {
		names[i] = alias(r.outputs, name)
	}
	got, err := r.Session.Run(ctx, InputsOf(r.Session, args), names)
	if err != nil {
		return nil, err
	}
	out := map[string]*ir.Array{}
	for i, name := range fetch {
		out[name] = got[names[i]]
	}
	return out, nil
}

// Inputs are those of the teacher under the names of the student.
func (r *aliasSession) Inputs() []op.Port { return aliasPorts(r.Session.Inputs(), r.inputs) }

// Outputs are those of the teacher under the names of the student.
func (r *aliasSession) Outputs() []op.Port { return aliasPorts(r.Session.Outputs(), r.outputs) }

func aliasPorts(ports []op.Port, names map[string]string) []op.Port {
	by := map[string]string{}
	for mine, theirs := range names {
		by[theirs] = mine
	}
	out := make([]op.Port, len(ports))
	for i, p := range ports {
		out[i] = p
		out[i].Name = alias(by, p.Name)
	}
	return out
}

// alias is the name that names has for name, or name itself.
func alias(names map[string]string, name string) string {
	if n, ok := names[name]; ok {
		return n
	}
	return name
}

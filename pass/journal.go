package pass

import "fmt"

// Unit is the name of a unit of the step among those of the run.
func (s *Step) Unit(name string) string {
	// Precheck is part of the name: the second attempt of a run leaves out weights, so that results of its first one are
	// of another computation.
	return fmt.Sprintf("step %d, %s, %v: %s", s.index, s.Method, s.Env.Precheck, name)
}

package pass

import "fmt"

// Unit is the name of a unit of the step among those of the run.
func (s *Step) Unit(name string) string {
	return fmt.Sprintf("step %d, %s, %v: %s", s.index, s.Method, s.Env.Precheck, name)
}

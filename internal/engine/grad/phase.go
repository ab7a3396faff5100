package grad

// A Phase is a part of a training step.
type Phase string

// Phases of a training step.
const (
	Forward       Phase = "forward" // with the losses
	Recomputation Phase = "recomputation"
	Backward      Phase = "backward"
	Update        Phase = "update" // of weights or accumulated gradients
)

// phases returns the phase of each value that a node computes, by name. It is called after Backward and the changes of
// activations; nodes that are added later are updates.
func (a *Activations) phases() map[string]Phase {
	phases := map[string]Phase{}
	phase := Forward
	for n := range a.Graph().Nodes() {
		for _, v := range n.Outputs {
			if v != nil {
				phases[v.Name] = phase
			}
		}
		if n == a.seeded {
			phase = Backward
		}
	}
	for n := range a.copies {
		for _, v := range n.Outputs {
			if v != nil {
				phases[v.Name] = Recomputation
			}
		}
	}
	return phases
}

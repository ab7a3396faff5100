package ir

// Become puts v in the place of n's only output: v takes over the readers, the name
// and the type, so that outputs and layers keep their names, and n is removed.
func (n *Node) Become(v *Value) {
	old := n.Outputs[0]
	old.ReplaceUses(v)
	if v.Name != old.Name && !v.IsInput() {
		v.Name, old.Name = old.Name, v.Name
	}
	v.Type = old.Type
	n.Remove()
}

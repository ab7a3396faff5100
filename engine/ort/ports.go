package ort

// A port is an input or output of the graph.
type port struct {
	name string
}

// findPorts reads the names and types of what can be fed and fetched.
func (s *Session) findPorts() error {
	for _, side := range []struct {
		ports                 *[]port
		count, nameOf, typeOf function
	}{
		{&s.inputs, sessionGetInputCount, sessionGetInputName, sessionGetInputTypeInfo},
		{&s.weights, sessionGetOverridableCount, sessionGetOverridableName, sessionGetOverridableTypeInfo},
		{&s.outputs, sessionGetOutputCount, sessionGetOutputName, sessionGetOutputTypeInfo},
	} {
		n, err := get[uintptr](s.lib, side.count, s.session)
		if err != nil {
			return err
		}
		for i := range n {
			name, err := s.name(side.nameOf, i)
			if err != nil {
				return err
			}
			*side.ports = append(*side.ports, port{name})
		}
	}
	return nil
}

func (s *Session) name(of function, i uintptr) (string, error) {
	address, err := get[uintptr](s.lib, of, s.session, i, s.lib.allocator)
	if err != nil {
		return "", err
	}
	name := text(address)
	return name, s.lib.call(allocatorFree, s.lib.allocator, address)
}

package pass

// RemovedLayers are the layers that a step removed from a stack of layers of one kind.
type RemovedLayers struct {
	Layers  int   `json:"layers"`  // before
	Removed []int `json:"removed"` // their numbers, from 0

	// Cached is set where each layer has inputs and outputs of the graph, such as past and present keys, by which the
	// layers are numbered.
	Cached bool `json:"cached"`

	Submodel Submodel `json:"submodel,omitempty"` // of the model
	Change   int      `json:"-"`                  // as that of a ConfigValue
}

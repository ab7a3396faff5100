package pass

// Keys of config.json for numbers that pruning changes.
const (
	AttentionHeads   = "num_attention_heads"
	KeyValueHeads    = "num_key_value_heads"
	IntermediateSize = "intermediate_size"
)

// A ConfigValue is a number of a model's architecture that a step changed, and that configuration outside of the model has too.
type ConfigValue struct {
	Name     string `json:"name"` // key of config.json
	From     int    `json:"from"`
	To       []int  `json:"to"`                  // ascending; several where layers differ, which configuration cannot have
	HeadSize int    `json:"head_size,omitempty"` // of attention heads, which configuration may leave to be computed from their number
}
